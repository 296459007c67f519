package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

var exploring = flag.Duration("explore", 20*time.Second, "how long to explore each scenario with each kind of fault")

// TestExplore_Faults explores an unharmed Kubernetes behind a bad network, and with all faults that a scenario permits, on a cluster that is created
// for each of these runs.
func TestExplore_Faults(t *testing.T) {
	clustertest.Long(t)
	for name, argumentsOf := range map[string]func(*testing.T) []string{
		"a bad network": func(t *testing.T) []string {
			_, kubeconfig := Serve(t, clustertest.Cluster(t, bin).RESTConfig(), All(*seed))
			return []string{"--kubeconfig", kubeconfig}
		},
		"injected faults": func(*testing.T) []string {
			return []string{"--provider", "embedded", "--nodes", "0", "--inject", "all"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := argumentsOf(t)
			for _, scenario := range scenarios.All {
				if scenario == scenarios.Nodes || scenario == scenarios.Operator {
					continue // the clusters have neither; TestExplorations in test/e2e/operator has an operator
				}
				t.Run(scenario.Name, func(t *testing.T) { exploreWithoutFindings(t, append(arguments, "--scenario", scenario.Name)...) })
			}
		})
	}
}

func exploreWithoutFindings(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(bin, "runner"), append([]string{"explore", "--for", exploring.String(), "--seed", fmt.Sprint(*seed),
		"--report-dir", t.ArtifactDir()}, arguments...)...)
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	output, err := command.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(output))
	t.Logf("%s", output)
}
