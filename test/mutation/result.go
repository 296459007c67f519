package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

// outcome is the result of running the suites with a mutant.
type outcome struct {
	experiment
	took time.Duration
	// missed are behaviors that failed, in order.
	missed []string
	// problem is why there is no result.
	problem error
	// repeated is why the experiment was repeated with a separate cluster; nil when it was not.
	repeated error
	// earlier is set when the outcome is from an earlier run of the same binaries.
	earlier bool
}

// test runs the suites with one mutant, or uses the report of an earlier run of the same binaries. A shared cluster decides only that a
// mutant is killed; where it does not, the experiment is repeated with a separate cluster.
func (l laboratory) test(ctx context.Context, s *station, e experiment, again bool) outcome {
	start := time.Now()
	if again {
		if whole, done := l.reported(e); done {
			return outcome{experiment: e, missed: missed(whole), earlier: true}
		}
	}
	var repeated error
	if e.shares() && l.faults == 0 {
		whole, err := s.test(ctx, e)
		if err == nil {
			return outcome{experiment: e, took: time.Since(start), missed: missed(whole)}
		}
		repeated = err
	}
	whole, err := l.runSuites(ctx, e)
	return outcome{experiment: e, took: time.Since(start), missed: missed(whole), problem: err, repeated: repeated}
}

// errSurvived is why a mutant is run again.
var errSurvived = errors.New("not killed next to other runs")

// testAlone runs the suites with a mutant again, while nothing else runs.
func (l laboratory) testAlone(ctx context.Context, e experiment) outcome {
	start := time.Now()
	whole, err := l.runSuites(ctx, e)
	return outcome{experiment: e, took: time.Since(start), missed: missed(whole), problem: err, repeated: errSurvived}
}

// reported returns the report of an earlier run, if it used the same binaries and ran all required behaviors.
func (l laboratory) reported(e experiment) (v1alpha1.Report, bool) {
	whole, done := l.reportIn(l.path("runs", e.mutant.Name))
	if !done {
		return v1alpha1.Report{}, false
	}
	for _, result := range whole.Clusters[0].Results {
		if e.includes(result.ID) && (result.Outcome == v1alpha1.Filtered || result.Outcome == v1alpha1.Errored) {
			return v1alpha1.Report{}, false
		}
	}
	return whole, true
}

// reportIn returns the report of a run with a mutant in a directory, if it used the same binaries and was not interrupted.
func (l laboratory) reportIn(dir string) (v1alpha1.Report, bool) {
	kubernetes, err := l.kubernetes()
	if err != nil {
		return v1alpha1.Report{}, false
	}
	if !sameFile(l.path("runner"), filepath.Join(dir, "runner")) {
		return v1alpha1.Report{}, false
	}
	for _, binary := range []string{"kubernetes", "kubectl"} {
		if !sameFile(filepath.Join(kubernetes, binary), filepath.Join(dir, "kubernetes", filepath.Base(kubernetes), binary)) {
			return v1alpha1.Report{}, false
		}
	}
	whole, err := runnertest.Report(filepath.Join(dir, "reports"))
	if err != nil || whole.Interrupted || len(whole.Clusters) != 1 {
		return v1alpha1.Report{}, false
	}
	return whole, true
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// runSuites runs the runner with the mutant and keeps its reports.
func (l laboratory) runSuites(ctx context.Context, e experiment) (v1alpha1.Report, error) {
	dir := l.path("runs", e.mutant.Name)
	if err := errors.Join(os.RemoveAll(dir), l.prepare(dir, e.mutant)); err != nil {
		return v1alpha1.Report{}, err
	}
	binary, reports, where := filepath.Join(dir, "runner"), filepath.Join(dir, "reports"), e.embedded()
	if l.faults > 0 {
		through, leave, err := l.throughFaults(ctx, dir)
		if err != nil {
			return v1alpha1.Report{}, err
		}
		defer leave()
		where = through
	}
	return runnertest.Run(ctx, binary, reports, append(where, e.arguments()...)...)
}

// prepare fills a directory with links to the runner and to Kubernetes, and with the name of the active mutant.
func (l laboratory) prepare(dir string, mutant Mutant) error {
	built, err := l.kubernetes()
	if err != nil {
		return err
	}
	binaries := filepath.Join(dir, "kubernetes", filepath.Base(built))
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(built)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue // of a build in progress
		}
		if err := os.Link(filepath.Join(built, entry.Name()), filepath.Join(binaries, entry.Name())); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Link(l.path("runner"), filepath.Join(dir, "runner")),
		os.WriteFile(filepath.Join(binaries, switchName), []byte(mutant.Name+"\n"), 0o644))
}

// missed returns the behaviors that failed in a report, in order.
func missed(written v1alpha1.Report) []string {
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
	return ids
}

// silent returns the behaviors that must kill the mutant and did not.
func (v outcome) silent() []string {
	return slices.DeleteFunc(slices.Clone(v.mutant.KilledBy), func(id string) bool { return slices.Contains(v.missed, id) })
}

// asExpected reports whether the behaviors that must kill the mutant did; without a mutant, whether all passed.
func (v outcome) asExpected() bool {
	return v.problem == nil && len(v.silent()) == 0 && (!v.isControl() || len(v.missed) == 0)
}

func (v outcome) word() string {
	switch {
	case v.problem != nil:
		return "errored"
	case v.isControl() && v.asExpected():
		return "passed"
	case v.isControl():
		return "FAILED"
	case len(v.missed) == 0:
		return "SURVIVED"
	case !v.asExpected():
		return "otherwise"
	}
	return "killed"
}

func (v outcome) summary() string {
	const few = 3
	switch {
	case v.problem != nil:
		return v.problem.Error()
	case len(v.missed) > few:
		return fmt.Sprintf("%s and %d more", strings.Join(v.missed[:few], ", "), len(v.missed)-few)
	}
	return strings.Join(v.missed, ", ")
}
