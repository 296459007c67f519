package e2e

import (
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
)

func TestRun_MissingKinds(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	lacks := besides([]string{"configmaps", "pods", "serviceaccounts"}, []string{"apps", "batch", "apiextensions.k8s.io"})
	kubeconfig := c.throughProxy(t, func(next http.Handler) http.HandlerFunc { return faults.Hiding(next, lacks) })

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "2", "--label-filter",
		"finalizers.generation-once || graceful.immediate-grace-zero || finalizers.held || options.unknown-dry-run || watch.by-name || /^finalizers\\.dry-run/").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Skipped)).To(And(
		HaveKeyWithValue("finalizers.generation-once", "the server does not serve ReplicaSet (apps/v1)"),
		HaveKeyWithValue("graceful.immediate-grace-zero", "the server does not serve Pod (v1)"),
		Not(ContainElement(ContainSubstring("ConfigMap")))))
	g.Expect(preflightOf(cluster, "kinds")).To(ConsistOf(And(HaveField("Cause", And(ContainSubstring("ReplicaSet (apps/v1)"), ContainSubstring("Pod (v1)"))),
		HaveField("Effect", Not(BeEmpty())), HaveField("Behaviors", ContainElements("finalizers.generation-once", "graceful.immediate-grace-zero")))))
	g.Expect(report.UnannouncedSkips(cluster)).To(BeEmpty())
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(And(HaveKey("finalizers.held"), HaveKey("options.unknown-dry-run"), HaveKey("watch.by-name")))
	g.Expect(resultOf(cluster, "finalizers.held").Timeline.Requests).To(ContainElement(HaveField("Object.Kind", "Secret")))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
}

// besides reports whether a path is that of one of these resources of the core group, or of one of these groups.
func besides(resources, groups []string) func(path []string) bool {
	return func(path []string) bool {
		return path[0] == "api" && slices.ContainsFunc(path, func(segment string) bool { return slices.Contains(resources, segment) }) ||
			path[0] == "apis" && len(path) > 1 && slices.Contains(groups, path[1])
	}
}
