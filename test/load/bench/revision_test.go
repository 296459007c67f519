package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
)

// recorded is the revision with which runs are compared, unless $REVISION names another.
const recorded = "e621ddc0"

// BenchmarkRevision runs the behaviors that this runner and that of the recorded revision have in common, in turn, each on an embedded cluster of
// its own: without a node, with one and with two. It reports how long runs take and their processor time, as ratios to the recorded revision. The
// start of the cluster counts for the processor time only.
func BenchmarkRevision(b *testing.B) {
	revision := cmp.Or(os.Getenv("REVISION"), recorded)
	before, err := runnerOf(b.Context(), revision)
	if err != nil {
		b.Fatal(err)
	}
	kubernetes, err := binaries.Find("../../../bin/kubernetes", "")
	if err != nil {
		b.Skip(err)
	}
	old, current := behaviorsOf(b, before), behaviorsOf(b, runner)
	b.Logf("comparing with revision %s", revision)
	for nodes := range 3 {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var was, is cost
			for b.Loop() {
				was.add(b, before, kubernetes, nodes, without(old, current))
				is.add(b, runner, kubernetes, nodes, without(current, old))
			}
			b.ReportMetric(0, "ns/op") // it would include both
			b.ReportMetric(is.took.Seconds()/float64(b.N), "run-s")
			b.ReportMetric(is.took.Seconds()/was.took.Seconds(), "times-as-long")
			b.ReportMetric(is.used.Seconds()/was.used.Seconds(), "times-the-cpu")
		})
	}
}

// cost is what runs took, and the processor time that they and their clusters used.
type cost struct{ took, used time.Duration }

// add measures a run of a runner.
func (c *cost) add(b *testing.B, runner, kubernetes string, nodes int, filter string) {
	b.Helper()
	folder := b.TempDir()
	command := exec.CommandContext(b.Context(), runner, "--provider", "embedded", "--kubernetes-binaries", kubernetes, "--nodes", fmt.Sprint(nodes),
		"--quiet", "--label-filter", filter, "--report-dir", folder)
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	content, err := os.ReadFile(filepath.Join(folder, "report.json"))
	if err != nil {
		b.Fatal(err)
	}
	var times struct{ Start, End time.Time } // all that every form of the report has
	if err := json.Unmarshal(content, &times); err != nil {
		b.Fatal(err)
	}
	c.took += times.End.Sub(times.Start)
	c.used += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}

// BenchmarkBuild builds the runner and the embedded Kubernetes of the last commit and of the recorded revision, in turn, with an empty build
// cache. It reports how long that takes as a ratio to the recorded revision, and when the API server can run, which gives the first verdict.
func BenchmarkBuild(b *testing.B) {
	var was, is, first time.Duration
	for b.Loop() {
		whole, _ := build(b, cmp.Or(os.Getenv("REVISION"), recorded))
		was += whole
		whole, apiServer := build(b, "HEAD")
		is, first = is+whole, first+apiServer
	}
	b.ReportMetric(0, "ns/op") // it would include both
	b.ReportMetric(first.Seconds()/float64(b.N), "api-server-s")
	b.ReportMetric(is.Seconds()/float64(b.N), "build-s")
	b.ReportMetric(is.Seconds()/was.Seconds(), "times-as-long")
}

// build builds everything of a revision, and returns how long all takes, and how long until the API server is built.
func build(b *testing.B, revision string) (whole, apiServer time.Duration) {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "revision")
	if err := checkOut(b.Context(), revision, dir); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	command := exec.CommandContext(b.Context(), "make", "-C", dir, "build")
	command.Env = append(os.Environ(), "GOCACHE="+b.TempDir(), "KUBERNETES_SOURCE=build")
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	whole = time.Since(began)
	built, err := filepath.Glob(filepath.Join(dir, "bin", "kubernetes", "v*", "kube-apiserver"))
	if err != nil || len(built) != 1 {
		b.Fatalf("API servers: %v, %v", built, err)
	}
	info, err := os.Stat(built[0])
	if err != nil {
		b.Fatal(err)
	}
	return whole, info.ModTime().Sub(began)
}

// checkOut writes the files of a revision into a new directory.
func checkOut(ctx context.Context, revision, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	write := `git -C ../../.. archive "$1" | tar -x -C "$2"`
	output, err := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", write, "checkout", revision, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("read revision %s, which needs the whole history of the repository: %w\n%s", revision, err, output)
	}
	return nil
}

// runnerOf builds the runner of a revision, unless that was done before.
func runnerOf(ctx context.Context, revision string) (string, error) {
	dir, err := filepath.Abs(filepath.Join("../../../bin/revisions", revision))
	if err != nil {
		return "", err
	}
	built := filepath.Join(dir, "bin", "runner")
	if exists(built) {
		return built, nil
	}
	if err := checkOut(ctx, revision, dir); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", built, "./cmd/runner")
	if command.Dir = dir; !exists(filepath.Join(dir, "go.work")) { // Go would find the one above
		command.Env = append(os.Environ(), "GOWORK=off")
	}
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the runner of revision %s: %w\n%s", revision, err, output)
	}
	return built, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// behaviorsOf are the ids of a runner's behaviors.
func behaviorsOf(b *testing.B, runner string) map[string]bool {
	b.Helper()
	output, err := exec.CommandContext(b.Context(), runner, "list", "--output", "json").Output()
	if err != nil {
		b.Fatal(err)
	}
	var listed []struct{ ID string }
	if err := json.Unmarshal(output, &listed); err != nil {
		b.Fatal(err)
	}
	ids := map[string]bool{}
	for _, behavior := range listed {
		ids[behavior.ID] = true
	}
	return ids
}

// without selects what only one of two runners lacks: nothing that others do not have.
func without(ids, others map[string]bool) string {
	var missing []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if !others[id] {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "!(" + strings.Join(missing, " || ") + ")"
}
