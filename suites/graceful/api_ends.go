package graceful

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// orphanedByNode bounds how long the pod garbage collector takes: it looks every 20 s, and takes a pod 40 s after it
// first missed its node (pkg/controller/podgc).
const orphanedByNode = 2 * time.Minute

var _ = Describe("what else terminations a pod, or keeps it", func() {
	cluster := UseCluster()

	Specify("both must end: removing the finalizers before the grace is confirmed keeps the pod; confirming with 0 before the "+
		"finalizers are removed keeps it too; then it goes",
		Behavior("graceful.finalizer-and-grace", Core), func(ctx SpecContext) {
			released := cluster.Create(ctx, fixtures.GhostBoundPod("released"), Held)
			confirmed := cluster.Create(ctx, fixtures.GhostBoundPod("confirmed"), Held)
			cluster.Delete(ctx, released)
			cluster.Delete(ctx, confirmed)

			cluster.Release(ctx, released)
			Expect(cluster.Get(ctx, released)).To(And(BeTerminating(), HaveFinalizers(), HaveGracePeriod(30)))
			cluster.Delete(ctx, confirmed, Grace(0))
			Expect(cluster.Get(ctx, confirmed)).To(And(BeTerminating(), HaveFinalizers(Hold), HaveGracePeriod(0)))

			cluster.Delete(ctx, released, Grace(0))
			Expect(cluster.TryGet(ctx, released)).To(BeGone())
			cluster.Release(ctx, confirmed)
			Expect(cluster.TryGet(ctx, confirmed)).To(BeGone())
		})

	Specify("an eviction's deleteOptions decide the grace; a PodDisruptionBudget refuses it with 429 and changes nothing",
		Behavior("graceful.eviction-options", Core), func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := cluster.SetPhase(ctx, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			protected := cluster.Create(ctx, fixtures.GhostBoundPod("protected"), WithLabel(Domain+"/protected", "yes"))
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/protected", "yes"))
			protected = cluster.SetPhase(ctx, protected, "Running") // budgets do not protect pending pods

			for _, pod := range []*Object{pending, running} {
				Expect(cluster.TryEvict(ctx, pod, DryRun)).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
			}

			Expect(cluster.TryEvict(ctx, protected, Grace(20))).To(HaveStatusCode(http.StatusTooManyRequests))
			Expect(cluster.Get(ctx, protected)).To(BeUnchangedSince(protected))
		})

	Specify("a pod bound to a node that does not exist is removed by the pod garbage collector",
		Behavior("graceful.orphaned-by-node", Core, KCM, Slow), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			Eventually(ctx, cluster.History(pod)).WithTimeout(orphanedByNode).Should(HaveObserved(Added(pod), Deleted(pod)))
		})
})
