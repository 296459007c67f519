package graceful

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Pods with finalizers", func() {
	cluster := UseCluster()

	Specify("A pod with a finalizer must be removed only after both its grace period is confirmed with 0 and the "+
		"finalizer is removed, in either order.",
		Behavior("graceful.finalizer-and-grace", Core,
			Source(objectMeta),
			Promise("The resource is expected to be deleted ... after the time in this field, once the finalizers list is empty.")), func(ctx SpecContext) {
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
})
