package operator

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/controllers"
)

// Pages about controllers.
const (
	finalizersPage = "concepts/overview/working-with-objects/finalizers"
	kubebuilder    = "book.kubebuilder.io/reference/using-finalizers"
	operatorSDK    = "sdk.operatorframework.io/docs/building-operators/golang/advanced-topics: handle cleanup on deletion"
)

var _ = Describe("Finalizers of controllers", func() {
	cluster := UseCluster()

	Specify("A controller must add its finalizer to an object before creating children for the object.",
		Behavior("operator.finalizer-before-children", Extended, AnyResource, Controller, Source(kubebuilder)), func(ctx SpecContext) {
			children := controllers.WatchChildren(ctx, cluster)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			finalized := children.AwaitFinalizer(ctx, object)

			for _, child := range mustHave(children.Of(object)) {
				controllers.MustHaveComparableVersions(ctx, cluster, object, child)
				Expect(child).To(controllers.BeWrittenAfter(finalized))
			}
		})

	Specify("A controller must remove its finalizer despite repeated deletes, and must then create no children, even "+
		"if existing children are deleted.",
		Behavior("operator.repeated-deletes", Extended, AnyResource, Controller, Source(operatorSDK)), func(ctx SpecContext) {
			children := controllers.WatchChildren(ctx, cluster)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)
			children.AwaitIdle(ctx, object)

			for _, response := range TryDeleteAtOnce(ctx, cluster, object, 5) {
				Expect(response).To(BeAccepted())
			}
			Eventually(ctx, cluster.History(object)).Should(HaveObserved(Matching(object, And(BeTerminating(), HaveFinalizers(Hold)))))
			made := children.AwaitIdle(ctx, object)
			cluster.Delete(ctx, object)
			cluster.Delete(ctx, object, Grace(0))
			for _, child := range made {
				cluster.TryDelete(ctx, child)
			}
			controllers.Touch(ctx, cluster, object)
			Expect(children.AwaitIdle(ctx, object)).To(ConsistOf(made))
			Expect(cluster.Get(ctx, object)).To(HaveFinalizers(Hold))

			cluster.Release(ctx, object)
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			Expect(children.AwaitIdle(ctx, object)).To(ConsistOf(made))
		})
})

var _ = Describe("Stopped controllers", Serial, func() {
	cluster := UseCluster()

	Specify("An object that is deleted while its controller is stopped must keep its finalizers, and must be removed "+
		"after the controller has started again.",
		Behavior("operator.controller-stopped", Extended, AnyResource, Controller, Disruptive,
			Source(finalizersPage),
			Promise("Prevents the object from being removed until all items are removed from its `metadata.finalizers` field")), func(ctx SpecContext) {
			children := controllers.WatchChildren(ctx, cluster)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			children.AwaitFinalizer(ctx, object)
			finalizers := cluster.Get(ctx, object).GetFinalizers()

			start := controllers.Stop(ctx, cluster)
			cluster.Delete(ctx, object)
			children.AwaitIdle(ctx, object)
			Expect(cluster.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(finalizers...)))

			start(ctx)
			Eventually(ctx, cluster.History(object)).WithTimeout(controllers.TakeoverTimeout(cluster)).Should(HaveObserved(Deleted(object)))
		})
})
