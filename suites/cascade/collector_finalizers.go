package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Finalizers that select the propagation policy", func() {
	cluster := UseCluster()

	Specify("A delete without a propagation policy must orphan the dependents of an object with the orphan finalizer, "+
		"even if the garbage collector sends the delete.",
		Behavior("cascade.orphan.by-finalizer", Core, AnyResource, GC,
			Source(deleteOptions), Promise(defaultPolicy)), func(ctx SpecContext) {
			wish := WithFinalizers(metav1.FinalizerOrphanDependents)
			direct := cluster.Create(ctx, fixtures.ConfigMap("direct"), wish)
			top := cluster.Create(ctx, fixtures.ConfigMap("top"))
			collected := cluster.Create(ctx, fixtures.ConfigMap("collected"), wish, OwnedBy(top))
			childOfDirect := cluster.Create(ctx, fixtures.ConfigMap("child-of-direct"), OwnedBy(direct))
			childOfCollected := cluster.Create(ctx, fixtures.ConfigMap("child-of-collected"), OwnedBy(collected))

			cluster.Delete(ctx, direct)
			cluster.Delete(ctx, top, Background)

			Eventually(ctx, cluster.History(direct, childOfDirect)).Should(
				HaveObserved(Terminating(direct), Matching(childOfDirect, BeOwnedBy()), Deleted(direct)))
			Eventually(ctx, cluster.History(top, collected, childOfCollected)).Should(
				HaveObserved(Deleted(top), Terminating(collected), Matching(childOfCollected, BeOwnedBy()), Deleted(collected)))
			cluster.AwaitCollector(ctx)
			for _, orphan := range []*Object{childOfDirect, childOfCollected} {
				Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), BeOwnedBy(), Not(BeTerminating())))
			}
		})

	Specify("A delete without a propagation policy must be a foreground deletion of an object with the "+
		"foregroundDeletion finalizer, even if the garbage collector sends the delete.",
		Behavior("cascade.foreground.by-finalizer", Core, AnyResource, GC,
			Source(deleteOptions), Promise(defaultPolicy)), func(ctx SpecContext) {
			wish := WithFinalizers(metav1.FinalizerDeleteDependents)
			direct := cluster.Create(ctx, fixtures.ConfigMap("direct"), wish)
			top := cluster.Create(ctx, fixtures.ConfigMap("top"))
			collected := cluster.Create(ctx, fixtures.ConfigMap("collected"), wish, OwnedBy(top))
			childOfDirect := cluster.Create(ctx, fixtures.ConfigMap("child-of-direct"), OwnedBy(direct, Blocking), Held)
			childOfCollected := cluster.Create(ctx, fixtures.ConfigMap("child-of-collected"), OwnedBy(collected, Blocking), Held)

			cluster.Delete(ctx, direct)
			cluster.Delete(ctx, top, Background)

			Eventually(ctx, cluster.History(direct, childOfDirect)).Should(
				HaveObserved(Terminating(direct), Terminating(childOfDirect)))
			Eventually(ctx, cluster.History(top, collected, childOfCollected)).Should(
				HaveObserved(Deleted(top), Terminating(collected), Terminating(childOfCollected)))
			cluster.AwaitCollector(ctx)
			for _, owner := range []*Object{direct, collected} {
				Expect(cluster.Get(ctx, owner)).To(And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents)))
			}

			cluster.Release(ctx, childOfDirect)
			cluster.Release(ctx, childOfCollected)
			Eventually(ctx, cluster.History(direct, childOfDirect)).Should(HaveObserved(Deleted(childOfDirect), Deleted(direct)))
			Eventually(ctx, cluster.History(collected, childOfCollected)).Should(
				HaveObserved(Deleted(childOfCollected), Deleted(collected)))
		})
})
