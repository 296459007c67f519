// Package bench measures how long a run of the suites takes with different numbers of workers, and compares it with what
// no number of workers can beat: the longest single behavior, and the CPU time that is needed. It also compares a busy cluster
// with an empty one. Run it with `make bench`.
package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// runner is the binary that `make build` makes.
const runner = "../../../bin/runner"

// parts are what is measured: everything but what is slow, and of that what needs no custom kind. The garbage collector
// takes up to 30 s to learn of one.
var parts = []struct{ name, filter string }{{"everything", ""}, {"without-crd", "!(needs: containsAny crd)"}}

// BenchmarkRun runs what needs no node on an embedded cluster. The time of the run does not contain the cluster's start.
// No number of workers can beat bound-s: the longest single behavior takes that long, or all processors are busy as long.
func BenchmarkRun(b *testing.B) {
	for _, part := range parts {
		for _, processes := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprintf("%s/procs=%d", part.name, processes), func(b *testing.B) {
				var took, longest, cpu float64
				for b.Loop() {
					whole, used := run(b, processes, part.filter)
					took += whole.End.Sub(whole.Start).Seconds()
					longest += longestOf(whole)
					cpu += used.Seconds()
				}
				runs := float64(b.N)
				b.ReportMetric(0, "ns/op") // which would contain the cluster's start
				b.ReportMetric(took/runs, "run-s")
				b.ReportMetric(longest/runs, "longest-s")
				b.ReportMetric(cpu/runs, "cpu-s")
				b.ReportMetric(max(longest/runs, cpu/runs/float64(runtime.NumCPU())), "bound-s")
			})
		}
	}
}

// run runs the suites once and returns the report, with the CPU time of the runner, its workers and its cluster.
func run(b *testing.B, processes int, filter string) (v1alpha1.Report, time.Duration) {
	b.Helper()
	folder := b.TempDir()
	command := exec.Command(runner, "--provider", "embedded", "--node", "none", "--quiet", "--label-filter", filter,
		"--procs", fmt.Sprint(processes), "--report-dir", folder)
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	whole, err := report.Read(filepath.Join(folder, "report.json"))
	if err != nil {
		b.Fatal(err)
	}
	return whole, command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}

// longestOf is how long the longest behavior took, in seconds.
func longestOf(whole v1alpha1.Report) float64 {
	longest := 0.0
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			longest = max(longest, result.Seconds)
		}
	}
	return longest
}
