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
	runs   = flag.Int("runs", 1, "how many runs go through bad weather, each with another seed")
	seed   = flag.Uint64("seed", 1, "the first seed")
	filter = flag.String("filter", someOfEach, "the behaviours to judge")
	kind   = flag.String("weather", "bad", "the weather: bad, far (200 ms away) or throttled (10 requests a second)")
)

// someOfEach are behaviours of every suite and with every way of asking that needs no more than seconds.
const someOfEach = `/^watch\./ || /^cascade\.foreground\.(blocking|pod-owner|other|unblocked|reference)/ || /^finalizers\.(held|generation)/` +
	` || /^graceful\.(zero|shorter|only|version)/ || /^options\.unknown/ || /^cascade\.(orphan|background)\.o/ || /^permission\.r/`

// bin is where `make build` puts the runner.
const bin = "../../bin"

// kinds are what a run can go through.
func weatherOf(seed uint64) Weather {
	switch *kind {
	case "far":
		return Weather{Latency: 200 * time.Millisecond}
	case "throttled":
		return Weather{PerSecond: 10}
	}
	return Bad(seed)
}

func TestVerdictsAreTheSameInBadWeather(t *testing.T) {
	clustertest.Long(t)
	cluster := clustertest.Cluster(t, bin)
	clear := run(t, cluster, Weather{})
	for i := range *runs {
		weather := weatherOf(*seed + uint64(i))
		t.Run(fmt.Sprintf("seed=%d", weather.Seed), func(t *testing.T) {
			g := NewWithT(t)
			bad := run(t, cluster, weather)
			g.Expect(differing(verdicts(clear), verdicts(bad))).To(BeEmpty())
			t.Logf("clear %s, bad %s, judged again: %v", took(clear), took(bad), again(bad))
		})
	}
}

func took(r v1alpha1.Report) time.Duration { return r.End.Sub(r.Start).Round(time.Millisecond) }

// again says of behaviours that were judged again why.
func again(r v1alpha1.Report) []string {
	var again []string
	for _, result := range r.Clusters[0].Results {
		for _, try := range result.Tries {
			again = append(again, result.ID+": "+try.Reason)
		}
	}
	return again
}

// verdicts are the outcomes of a run, and why what was not judged was not, by id.
func verdicts(r v1alpha1.Report) map[string]string {
	verdicts := map[string]string{}
	for _, result := range r.Clusters[0].Results {
		verdicts[result.ID] = string(result.Outcome)
		if slices.Contains([]v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Errored, v1alpha1.Skipped}, result.Outcome) {
			verdicts[result.ID] += ": " + report.ReasonOf(result)
		}
	}
	return verdicts
}

// differing are the behaviours on which two runs do not agree, and what each says.
func differing(one, other map[string]string) []string {
	var differing []string
	for id, verdict := range one {
		if other[id] != verdict {
			differing = append(differing, fmt.Sprintf("%s: %s, and then %s", id, verdict, other[id]))
		}
	}
	return differing
}

// run judges behaviours through the weather.
func run(t *testing.T, cluster *embedded.Cluster, weather Weather) v1alpha1.Report {
	t.Helper()
	g := NewWithT(t)
	proxy, kubeconfig := Serve(t, cluster.RESTConfig(), weather)
	folder := t.TempDir()
	command := exec.Command(filepath.Join(bin, "runner"), "--kubeconfig", kubeconfig, "--report-dir", folder,
		"--disruptive", "--label-filter", *filter)
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	said, err := command.CombinedOutput()
	t.Logf("%v: %v\n%s", weather, proxy.Seen(), said)
	g.Expect(err).NotTo(HaveOccurred())
	read, err := report.Read(filepath.Join(folder, "report.json"))
	g.Expect(err).NotTo(HaveOccurred())
	return read
}
