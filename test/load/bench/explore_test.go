package bench

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
)

// explorationTime is how long each exploration lasts.
const explorationTime = 30 * time.Second

// explored matches the last line of progress of an exploration.
var explored = regexp.MustCompile(`(\d+) rounds, (\d+) requests, (\d+) events, seed \d+, checked in (\S+)`)

// BenchmarkExplore explores an embedded cluster without a node. It reports the requests and events that are checked in a second, and the share of
// the checks in the processor time of the runner and the cluster, in percent.
func BenchmarkExplore(b *testing.B) {
	for _, scenario := range scenarios.All {
		if scenario == scenarios.Nodes {
			continue // its clients mostly wait
		}
		b.Run(scenario.Name, func(b *testing.B) {
			var requests, events, checking, processors float64
			for b.Loop() {
				command := exec.Command(runner, "explore", "--provider", "embedded", "--nodes", "0", "--scenario", scenario.Name,
					"--for", explorationTime.String(), "--seed", "1")
				output, err := command.CombinedOutput()
				counted := explored.FindSubmatch(output)
				if err != nil || counted == nil {
					b.Fatalf("%v\n%s", err, output)
				}
				checked, err := time.ParseDuration(string(counted[4]))
				if err != nil {
					b.Fatal(err)
				}
				requests += number(b, counted[2])
				events += number(b, counted[3])
				checking += checked.Seconds()
				processors += (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
			}
			seconds := float64(b.N) * explorationTime.Seconds()
			b.ReportMetric(0, "ns/op") // it would include the cluster's start
			b.ReportMetric(requests/seconds, "requests/s")
			b.ReportMetric(events/seconds, "events/s")
			b.ReportMetric(100*checking/processors, "checks-%")
		})
	}
}

func number(b *testing.B, digits []byte) float64 {
	b.Helper()
	parsed, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		b.Fatal(err)
	}
	return parsed
}
