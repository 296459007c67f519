package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// stopTime is how long a run that is stopped may take to remove its cluster.
const stopTime = 30 * time.Second

// verdict is what came of running the suites with a defect.
type verdict struct {
	defect  Defect
	seconds float64
	// missed are behaviours that did not hold.
	missed []string
	// problem says why nothing was judged.
	problem string
}

// judgeAll runs the suites with nothing planted, and with each defect, some side by side, and prints a line each.
func (l laboratory) judgeAll(ctx context.Context, defects []Defect, sideBySide int) error {
	fmt.Printf("%-44s %-10s %8s  %s\n", "DEFECT", "", "SECONDS", "BEHAVIOURS THAT DID NOT HOLD")
	waiting := make(chan Defect)
	verdicts := make(chan verdict)
	var running sync.WaitGroup
	for range sideBySide {
		running.Go(func() {
			for defect := range waiting {
				verdicts <- l.judge(ctx, defect)
			}
		})
	}
	go func() {
		for _, defect := range append(controls(defects), defects...) {
			waiting <- defect
		}
		close(waiting)
		running.Wait()
		close(verdicts)
	}()
	var failed []string
	for verdict := range verdicts {
		if ctx.Err() != nil {
			continue // what was interrupted was not judged
		}
		fmt.Printf("%-44s %-10s %8.0f  %s\n", verdict.defect.Name, verdict.word(), verdict.seconds, verdict.say())
		if !verdict.asItShould() {
			failed = append(failed, verdict.defect.Name)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %s (reports in %s)", errUnnoticed, strings.Join(failed, ", "), l.path("runs", "NAME", "reports"))
	}
	return nil
}

// controls are runs with nothing planted, to compare with: on a node, without one, or both.
func controls(defects []Defect) []Defect {
	var controls []Defect
	for _, node := range []bool{false, true} {
		if slices.ContainsFunc(defects, func(defect Defect) bool { return defect.Node == node }) {
			name := map[bool]string{false: "none", true: "none-on-a-node"}[node]
			controls = append(controls, Defect{Name: name, Breaks: "nothing", Node: node})
		}
	}
	return controls
}

// judge runs the suites with one defect.
func (l laboratory) judge(ctx context.Context, defect Defect) verdict {
	verdict := verdict{defect: defect}
	start := time.Now()
	err := l.runSuites(ctx, defect)
	verdict.seconds = time.Since(start).Seconds()
	if err != nil {
		verdict.problem = err.Error()
		return verdict
	}
	verdict.missed, err = missed(l.path("runs", defect.Name, "reports", "report.json"))
	if err != nil {
		verdict.problem = err.Error()
	}
	return verdict
}

// runSuites runs the runner with the defect and keeps its reports. Only what shows on a node is given one.
func (l laboratory) runSuites(ctx context.Context, defect Defect) error {
	dir := l.path("runs", defect.Name)
	reports := filepath.Join(dir, "reports")
	if err := errors.Join(os.RemoveAll(dir), l.prepare(dir, defect), os.MkdirAll(reports, 0o755)); err != nil {
		return err
	}
	arguments := []string{"--provider", "local", "--procs", "8", "--quiet", "--report-dir", reports}
	if defect.Node {
		arguments = append(arguments, "--node", "kubelet", "--label-filter", "needs: containsAny node")
	} else {
		arguments = append(arguments, "--node", "none")
	}
	command := exec.CommandContext(ctx, filepath.Join(dir, "runner"), arguments...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = stopTime
	output, err := command.CombinedOutput()
	if err := os.WriteFile(filepath.Join(reports, "output.txt"), output, 0o644); err != nil {
		return err
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // a behaviour failed
	}
	if err != nil {
		return fmt.Errorf("run the suites: %w: %s", err, lastLine(string(output)))
	}
	return nil
}

// prepare fills a directory with links to the runner and to Kubernetes, and names the defect that is to act in it.
func (l laboratory) prepare(dir string, defect Defect) error {
	built, err := filepath.Glob(l.path("kubernetes", "v*"))
	if err != nil || len(built) != 1 {
		return fmt.Errorf("find what was built: %q in %s: %w", built, l.path("kubernetes"), err)
	}
	binaries := filepath.Join(dir, "kubernetes", filepath.Base(built[0]))
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(built[0])
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue // of a build that is going on
		}
		if err := os.Link(filepath.Join(built[0], entry.Name()), filepath.Join(binaries, entry.Name())); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Link(l.path("runner"), filepath.Join(dir, "runner")),
		os.WriteFile(filepath.Join(binaries, switchName), []byte(defect.Name+"\n"), 0o644))
}

// missed are the behaviours that a report says did not hold, the first to fail first.
func missed(name string) ([]string, error) {
	written, err := report.Read(name)
	if err != nil {
		return nil, err
	}
	var results []v1alpha1.Result
	for _, cluster := range written.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Deviated {
				results = append(results, result)
			}
		}
	}
	end := func(result v1alpha1.Result) time.Time {
		return result.Start.Add(time.Duration(result.Seconds * float64(time.Second)))
	}
	slices.SortFunc(results, func(a, b v1alpha1.Result) int { return end(a).Compare(end(b)) })
	var ids []string
	for _, result := range results {
		ids = append(ids, result.ID)
	}
	return ids, nil
}

// asItShould says whether the behaviours that must notice the defect did; of nothing planted, whether all held.
func (v verdict) asItShould() bool {
	if len(v.defect.Noticed) == 0 {
		return v.problem == "" && len(v.missed) == 0
	}
	return v.problem == "" && !slices.ContainsFunc(v.defect.Noticed, func(id string) bool { return !slices.Contains(v.missed, id) })
}

func (v verdict) word() string {
	switch {
	case v.problem != "":
		return "unjudged"
	case len(v.defect.Noticed) == 0 && v.asItShould():
		return "held"
	case len(v.missed) == 0:
		return "UNNOTICED"
	case !v.asItShould():
		return "otherwise"
	}
	return "noticed"
}

func (v verdict) say() string {
	const few = 3
	switch {
	case v.problem != "":
		return v.problem
	case len(v.missed) > few:
		return fmt.Sprintf("%s and %d more", strings.Join(v.missed[:few], ", "), len(v.missed)-few)
	}
	return strings.Join(v.missed, ", ")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
