// Package bench measures how long a run of the suites takes with different numbers of workers, and compares it with the lower limits: the
// longest single behavior, and the required CPU time. It also compares a busy cluster with an empty one. Run it with `make bench`.
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

// runner is the binary that `make build` builds.
const runner = "../../../bin/runner"

// parts are the measured selections: everything except slow behaviors, and those of them without custom kinds, because the garbage
// collector takes up to 30 s to discover one.
var parts = []struct{ name, filter string }{{"everything", ""}, {"without-crd", "!(features: containsAny crd)"}}

// BenchmarkRun runs behaviors without a node on an embedded cluster. It does not measure the start of the cluster. bound-s is a lower bound
// for any number of workers: the longest single behavior, or the time in which all processors are busy.
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
				b.ReportMetric(0, "ns/op") // it would include the cluster's start
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
	command := exec.Command(runner, "--provider", "embedded", "--nodes", "0", "--quiet", "--label-filter", filter,
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

// longestOf returns the duration of the longest behavior, in seconds.
func longestOf(whole v1alpha1.Report) float64 {
	longest := 0.0
	for _, cluster := range whole.Clusters {
		for _, result := range cluster.Results {
			longest = max(longest, result.Seconds)
		}
	}
	return longest
}
