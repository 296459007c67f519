package e2e

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestKnownFailures(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const id = "finalizers.preconditions"
	known := write(t, "- {id: "+id+", resource: leases, reason: the proxy drops preconditions}")
	faulty := c.withoutPreconditions(t)
	run := func(kubeconfig string) outcome {
		return startRun(t, "--kubeconfig", kubeconfig, "--resource", "leases", "--procs", "1", "--wait-timeout", "4s", "--known-failures", known,
			"--label-filter", id+" || finalizers.changes-before-deletion").wait()
	}

	failing := run(faulty)
	g.Expect(failing.code).To(Equal(0))
	g.Expect(reasons(failing.cluster(t), v1alpha1.Known)).To(HaveLen(1))
	g.Expect(resultOf(failing.cluster(t), id).Outcome).To(Equal(v1alpha1.Known))
	g.Expect(failing.inJUnit(t)).To(HaveKeyWithValue(id, "skipped"))
	g.Expect(failing.out).To(ContainSubstring("the proxy drops preconditions"))

	passing := run(c.admin(t, "known-failures"))
	g.Expect(passing.code).To(Equal(1), "the entry can be removed")
	g.Expect(resultOf(passing.cluster(t), id).Outcome).To(Equal(v1alpha1.Outdated))
}
