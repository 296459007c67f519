package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

var (
	runs   = flag.Int("runs", 1, "how many runs with faults, each with another seed")
	seed   = flag.Uint64("seed", 1, "the first seed")
	filter = flag.String("filter", someOfEach, "the label filter of the behaviors to run")
	kind   = flag.String("faults", "all", "the faults to inject: all, latency (200 ms) or throttling (10 requests a second)")
)

// someOfEach selects behaviors of every suite and with every kind of request that take only seconds.
const someOfEach = `/^watch\./ || /^cascade\.foreground\.(blocking|pod-owner|other|unblocked|reference)/ || /^finalizers\.(held|generation)/` +
	` || /^graceful\.(zero|shorter|only|version)/ || /^options\.unknown/ || /^cascade\.(orphan|background)\.o/ || /^permission\.r/`

// bin is the output directory of `make build`.
const bin = "../../bin"

// injectedBy returns the faults that the flags select.
func injectedBy(seed uint64) Faults {
	switch *kind {
	case "latency":
		return Faults{Latency: 200 * time.Millisecond}
	case "throttling":
		return Faults{PerSecond: 10}
	}
	return All(seed)
}

func TestSuites_Faults(t *testing.T) {
	clustertest.Long(t)
	cluster := clustertest.Cluster(t, bin)
	clear := run(t, cluster, Faults{})
	for i := range *runs {
		injected := injectedBy(*seed + uint64(i))
		t.Run(fmt.Sprintf("seed=%d", injected.Seed), func(t *testing.T) {
			g := NewWithT(t)
			faulty := run(t, cluster, injected)
			g.Expect(differing(outcomes(clear), outcomes(faulty))).To(BeEmpty())
			t.Logf("without faults %s, with faults %s, repeated: %v", took(clear), took(faulty), again(faulty))
		})
	}
}

func took(r v1alpha1.Report) time.Duration { return r.End.Sub(r.Start).Round(time.Millisecond) }

// again returns the behaviors that were retried, with the reasons.
func again(r v1alpha1.Report) []string {
	var again []string
	for _, result := range r.Clusters[0].Results {
		for _, try := range result.Tries {
			again = append(again, result.ID+": "+try.Reason)
		}
	}
	return again
}

// outcomes maps behaviors to their outcomes, with the reason if they were not tested.
func outcomes(r v1alpha1.Report) map[string]string {
	outcomes := map[string]string{}
	for _, result := range r.Clusters[0].Results {
		outcomes[result.ID] = string(result.Outcome)
		if slices.Contains([]v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Errored, v1alpha1.Skipped}, result.Outcome) {
			outcomes[result.ID] += ": " + report.ReasonOf(result)
		}
	}
	return outcomes
}

// differing describes the behaviors with different outcomes in two runs.
func differing(one, other map[string]string) []string {
	var differing []string
	for id, outcome := range one {
		if other[id] != outcome {
			differing = append(differing, fmt.Sprintf("%s: %s, and then %s", id, outcome, other[id]))
		}
	}
	return differing
}

// run tests behaviors with network faults.
func run(t *testing.T, cluster *embedded.Cluster, injected Faults) v1alpha1.Report {
	t.Helper()
	g := NewWithT(t)
	proxy, kubeconfig := Serve(t, cluster.RESTConfig(), injected)
	folder := t.TempDir()
	command := exec.Command(filepath.Join(bin, "runner"), "--kubeconfig", kubeconfig, "--report-dir", folder,
		"--disruptive", "--label-filter", *filter)
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	said, err := command.CombinedOutput()
	t.Logf("%v: %v\n%s", injected, proxy.Seen(), said)
	g.Expect(err).NotTo(HaveOccurred())
	read, err := report.Read(filepath.Join(folder, "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	return read
}
