package e2e

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// offered are the features that the administrator of an embedded cluster without a node has.
var offered = []v1alpha1.Feature{
	v1alpha1.GC, v1alpha1.KCM, v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Namespace, v1alpha1.Volume, v1alpha1.Class, v1alpha1.SimulatedNode,
	v1alpha1.Hook, v1alpha1.PodNetwork, v1alpha1.Kubectl,
}

// tested checks that everything that a cluster supports was tested, and that the rest has a reason. Only these suites were selected;
// without any, all.
func tested(t *testing.T, cluster v1alpha1.Cluster, offered []v1alpha1.Feature, suites ...string) {
	t.Helper()
	g := NewWithT(t)
	for _, result := range cluster.Results {
		suite, _, _ := strings.Cut(result.ID, ".")
		testable := !slices.ContainsFunc(result.Features, func(feature v1alpha1.Feature) bool { return !slices.Contains(offered, feature) })
		switch {
		case result.Slow, len(suites) > 0 && !slices.Contains(suites, suite):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Filtered), result.ID)
		case testable && result.Outcome != v1alpha1.Skipped: // the behavior itself reports further requirements
			g.Expect(result.Outcome).To(Equal(v1alpha1.Passed), result.ID)
		default:
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Reason).NotTo(BeEmpty(), result.ID)
		}
	}
	g.Expect(len(reasons(cluster, v1alpha1.Passed))).To(BeNumerically(">=", 100))
}

func TestAPIServerAlone(t *testing.T) {
	isTestedAlone(t, "alone", "cascade", "options")
}

func TestAPIServerAlone_AllSuites(t *testing.T) {
	clustertest.Long(t)
	isTestedAlone(t, "alone-by-all")
}

// isTestedAlone runs suites, or all, on an API server without controllers.
func isTestedAlone(t *testing.T, user string, suites ...string) {
	t.Helper()
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)

	arguments := []string{"--kubeconfig", c.admin(t, user), "--procs", "2"}
	for _, suite := range suites {
		arguments = append(arguments, "--suite", suite)
	}
	ran := startRun(t, arguments...).wait()

	g.Expect(ran.code).To(Equal(0))
	whole, cluster := ran.report(t), ran.cluster(t)
	for _, result := range cluster.Results {
		switch {
		case result.Slow, len(suites) > 0 && !slices.Contains(suites, result.Suite()):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Filtered), result.ID)
		case len(result.Features) == 0 && strings.Contains(result.Reason, "the feature gate"):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
		case len(result.Features) == 0:
			g.Expect(result.Outcome).To(Equal(v1alpha1.Passed), result.ID)
		case slices.Contains(result.Features, v1alpha1.GC):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Timeline).To(BeZero(), "what is missing is found out by a probe, not by timeouts: %s", result.ID)
			g.Expect(result.Reason).To(ContainSubstring("the garbage collector did not act"), result.ID)
		case slices.Contains(result.Features, v1alpha1.KCM):
			g.Expect(result.Outcome).To(Equal(v1alpha1.Skipped), result.ID)
			g.Expect(result.Reason).To(ContainSubstring("the built-in controllers did not act"), result.ID)
		}
	}
	g.Expect(c.mentioning(t, whole.RunID)).To(BeEmpty(), "namespaces are gone, though nobody else finalizes them there")
}

func resultOf(cluster v1alpha1.Cluster, id string) v1alpha1.Result {
	at := slices.IndexFunc(cluster.Results, func(result v1alpha1.Result) bool { return result.ID == id })
	return cluster.Results[at]
}

func TestRun_NothingTested(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := bare.in(t)

	ran := startRun(t, "--kubeconfig", c.admin(t, "nothing-to-test"), "--procs", "2",
		"--suite", "cascade", "--label-filter", "features: containsAny gc").wait()

	g.Expect(ran.code).To(Equal(3))
	g.Expect(ran.out).To(And(
		ContainSubstring("nothing tested"), ContainSubstring("no behavior ran"), ContainSubstring("the garbage collector did not act")))
	g.Expect(reasons(ran.cluster(t), v1alpha1.Passed)).To(BeEmpty())
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}
