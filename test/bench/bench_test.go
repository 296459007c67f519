// Package bench measures how long a run of the suites takes with different numbers of workers, and compares it with what
// no number of workers can beat: the longest single behaviour, and the CPU time that is needed. Run it with `make bench`.
package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// runner is the binary that `make build` makes.
const runner = "../../bin/runner"

// BenchmarkRun runs everything that needs no node on an embedded cluster. The time of the run does not contain the
// cluster's start.
func BenchmarkRun(b *testing.B) {
	for _, processes := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("procs=%d", processes), func(b *testing.B) {
			var took, longest, cpu float64
			for b.Loop() {
				whole, used := run(b, processes)
				took += whole.End.Sub(whole.Start).Seconds()
				longest += longestOf(whole)
				cpu += used.Seconds()
			}
			b.ReportMetric(0, "ns/op") // which would contain the cluster's start
			b.ReportMetric(took/float64(b.N), "run-s")
			b.ReportMetric(longest/float64(b.N), "longest-s")
			b.ReportMetric(cpu/float64(b.N), "workers-cpu-s")
		})
	}
}

// run runs the suites once and returns the report, with the CPU time of the runner and its workers.
func run(b *testing.B, processes int) (v1alpha1.Report, time.Duration) {
	b.Helper()
	folder := b.TempDir()
	command := exec.Command(runner, "--provider", "local", "--node", "none", "--quiet",
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

// longestOf is how long the longest behaviour took, in seconds.
func longestOf(whole v1alpha1.Report) float64 {
	longest := 0.0
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			longest = max(longest, result.Seconds)
		}
	}
	return longest
}
