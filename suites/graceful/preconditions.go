package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Preconditions of pod deletes", func() {
	cluster := UseCluster()

	// refused expects a conditional delete to be refused with any grace period, and to change nothing.
	refused := func(ctx SpecContext, pod *Object, condition DeleteOption) {
		GinkgoHelper()
		for _, grace := range []int64{0, 60} {
			Expect(cluster.TryDelete(ctx, pod, Grace(grace), condition)).To(HaveStatusCode(http.StatusConflict))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
		}
	}

	Specify("A delete of a pod with another uid must be refused with 409 and change nothing, even if the uid is that "+
		"of a removed pod of that name.",
		Behavior("graceful.uid-precondition", Core, Source(deleteOptions), Promise(mustBeFulfilled)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			refused(ctx, pod, IfUID("somebody-else"))
			cluster.Delete(ctx, pod, Grace(60), IfUID(pod.GetUID()))
			terminating := cluster.Get(ctx, pod)
			Expect(terminating).To(And(BeTerminating(), HaveGracePeriod(60)))

			refused(ctx, terminating, IfUID("somebody-else"))
			cluster.Delete(ctx, pod, Grace(0), IfUID(pod.GetUID()))
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())

			namesake := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			Expect(cluster.TryDelete(ctx, namesake, Grace(0), IfUID(pod.GetUID()))).To(HaveStatusCode(http.StatusConflict))
			Expect(cluster.Get(ctx, namesake)).To(BeUnchangedSince(namesake))
		})

	Specify("A delete of a pod with another resourceVersion must be refused with 409 and change nothing, and a delete "+
		"with the current one must succeed.",
		Behavior("graceful.version-precondition", Core, Source(deleteOptions), Promise(mustBeFulfilled)), func(ctx SpecContext) {
			old := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			pod := workloads.SetPhase(ctx, cluster, old, "Running")

			refused(ctx, pod, IfVersion(old.GetResourceVersion()))
			cluster.Delete(ctx, pod, Grace(60), IfVersion(pod.GetResourceVersion()))
			terminating := cluster.Get(ctx, pod)
			Expect(terminating).To(And(BeTerminating(), HaveGracePeriod(60)))

			refused(ctx, terminating, IfVersion(pod.GetResourceVersion()))
			cluster.Delete(ctx, pod, Grace(0), IfVersion(terminating.GetResourceVersion()))
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
		})

	Specify("A dry-run delete of a pod, graceful or immediate, must return the deletionTimestamp that a delete would "+
		"set, and must change nothing.",
		Behavior("graceful.dry-run", Core, Source(apiConcepts),
			Promise("Kubernetes guarantees that dry-run requests will not be persisted in storage or have any other side effects.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			unscheduled := cluster.Create(ctx, fixtures.UnscheduledPod("unscheduled"))

			Expect(Require(cluster.TryDelete(ctx, pod, DryRun, Grace(60)))).To(And(BeTerminating(), HaveGracePeriod(60)))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))

			Expect(Require(cluster.TryDelete(ctx, pod, DryRun, Grace(0)))).To(And(BeTerminating(), HaveGracePeriod(0)))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))

			Expect(Require(cluster.TryDelete(ctx, unscheduled, DryRun))).To(BeTerminating())
			Expect(cluster.Get(ctx, unscheduled)).To(BeUnchangedSince(unscheduled))
		})
})
