package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/scenarios"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

var exploring = flag.Duration("explore", 20*time.Second, "how long to explore each scenario with each kind of fault")

// restartInterval is the time between two restarts of the API server, the controller manager and the scheduler.
const restartInterval = 30 * time.Second

// TestExplore_Faults explores an unharmed Kubernetes behind a bad network, and while it is restarted.
func TestExplore_Faults(t *testing.T) {
	clustertest.Long(t)
	for name, kubeconfigOf := range map[string]func(*testing.T, *embedded.Cluster) string{
		"a bad network": func(t *testing.T, cluster *embedded.Cluster) string {
			_, kubeconfig := Serve(t, cluster.RESTConfig(), All(*seed))
			return kubeconfig
		},
		"restarts": func(t *testing.T, cluster *embedded.Cluster) string {
			restartUntilTheEnd(t, cluster)
			return cluster.Kubeconfig()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clustertest.Cluster(t, bin)
			kubeconfig := kubeconfigOf(t, cluster)
			for _, scenario := range scenarios.All {
				if scenario == scenarios.Nodes {
					continue // the cluster has none
				}
				t.Run(scenario.Name, func(t *testing.T) { exploreWithoutFindings(t, kubeconfig, scenario) })
			}
		})
	}
}

func exploreWithoutFindings(t *testing.T, kubeconfig string, scenario *exploration.Scenario) {
	t.Helper()
	command := exec.Command(filepath.Join(bin, "runner"), "explore", "--kubeconfig", kubeconfig, "--scenario", scenario.Name,
		"--for", exploring.String(), "--seed", fmt.Sprint(*seed), "--report-dir", t.ArtifactDir())
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	output, err := command.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(output))
	t.Logf("%s", output)
}

// restartUntilTheEnd kills the API server and stops the controller manager and the scheduler every 30 s, and starts them again, until the test ends.
// A scheduler that goes on may end when a pod was replaced meanwhile (docs/explore.md).
func restartUntilTheEnd(t *testing.T, cluster *embedded.Cluster) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ticker := time.NewTicker(restartInterval)
		defer ticker.Stop()
		var err error
		for err == nil && ctx.Err() == nil {
			select {
			case <-ticker.C:
				err = restart(context.WithoutCancel(ctx), cluster.Features().Components)
			case <-ctx.Done():
			}
		}
		ended <- err
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func restart(ctx context.Context, socket string) error {
	parts := []component.Component{component.Scheduler, component.ControllerManager, component.APIServer}
	for _, which := range parts {
		if err := component.Stop(ctx, socket, which); err != nil {
			return err
		}
	}
	for _, which := range slices.Backward(parts) {
		if err := component.Start(ctx, socket, which); err != nil {
			return err
		}
	}
	return nil
}
