package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

var _ = Describe("Background deletion", func() {
	cluster := UseCluster()

	Specify("Background deletion must remove the owner immediately, and the DELETED event of the owner must precede "+
		"those of its dependents.",
		Behavior("cascade.background.owner-removed-first", Core, AnyResource, GC,
			Source(garbageCollection), Promise(inBackground)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			one := cluster.Create(ctx, fixtures.ConfigMap("one"), OwnedBy(owner))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"), OwnedBy(owner, Blocking))

			cluster.Delete(ctx, owner, Background)

			Expect(cluster.TryGet(ctx, owner)).To(BeGone())
			Eventually(ctx, cluster.History(owner, one, two)).Should(HaveObserved(Deleted(owner), Each(Deleted, one, two)))
			Expect(cluster.History(owner)).To(HaveObservedOnly(Added(owner), Deleted(owner)))
		})

	Specify("Background deletion must delete dependents of every kind, such as ConfigMaps, Secrets, Services and PersistentVolumeClaims.",
		Behavior("cascade.background.dependents-deleted", Core, GC,
			Source(garbageCollection), Promise(inBackground)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, Domain+"/any", "pod") }
			var dependents []*Object
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.Secret, fixtures.Service, fixtures.PersistentVolumeClaim, budget) {
				dependents = append(dependents, cluster.Create(ctx, kind("dependent"), OwnedBy(owner)))
			}

			cluster.Delete(ctx, owner, Background)

			for _, dependent := range dependents {
				Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Deleted(dependent)))
				Expect(cluster.TryGet(ctx, dependent)).To(BeGone())
			}
		})

	Specify("A dependent with a finalizer must remain, terminating, after the background deletion of its owner until "+
		"the finalizer is removed.",
		Behavior("cascade.background.held-dependent", Core, AnyResource, GC,
			Source(finalizersPage), Promise(untilRemoved)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner), Held)

			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Deleted(owner), Terminating(child)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, child)).To(And(BeTerminating(), HaveFinalizers(Hold)))

			cluster.Release(ctx, child)
			Expect(cluster.TryGet(ctx, child)).To(BeGone())
		})

	Specify("Background deletion must delete dependents of dependents without a further request.",
		Behavior("cascade.background.every-level", Core, AnyResource, GC,
			Source(objectMeta), Promise(allOwnersGone)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			grandchild := cluster.Create(ctx, fixtures.ConfigMap("grandchild"), OwnedBy(child))
			greatGrandchild := cluster.Create(ctx, fixtures.ConfigMap("great-grandchild"), OwnedBy(grandchild))

			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, child, grandchild, greatGrandchild)).Should(
				HaveObserved(Deleted(owner), Deleted(child), Deleted(grandchild), Deleted(greatGrandchild)))
		})

	Specify("A dependent that is created after the removal of its owner must be deleted.",
		Behavior("cascade.background.late-dependent", Core, AnyResource, GC,
			Source(objectMeta), Promise(allOwnersGone)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			cluster.Delete(ctx, owner, Background)
			Expect(cluster.TryGet(ctx, owner)).To(BeGone())

			late := cluster.Create(ctx, fixtures.ConfigMap("late"), OwnedBy(owner))

			Eventually(ctx, cluster.History(owner, late)).Should(HaveObserved(Deleted(owner), Added(late), Deleted(late)))
		})

	Specify("A delete with the propagation policy Background must remove an orphan or foregroundDeletion finalizer from the object.",
		Behavior("cascade.background.overrides-finalizer", Core, AnyResource,
			Source(deleteOptions), Promise(defaultPolicy)), func(ctx SpecContext) {
			for name, finalizer := range map[string]string{
				"orphan":     metav1.FinalizerOrphanDependents,
				"foreground": metav1.FinalizerDeleteDependents,
			} {
				free := cluster.Create(ctx, fixtures.ConfigMap(name), WithFinalizers(finalizer))
				held := cluster.Create(ctx, fixtures.ConfigMap(name+"-held"), WithFinalizers(finalizer), Held)

				cluster.Delete(ctx, free, Background)
				cluster.Delete(ctx, held, Background)

				Expect(cluster.TryGet(ctx, free)).To(BeGone())
				Eventually(ctx, cluster.History(free)).Should(HaveObservedOnly(Added(free), Deleted(free)))
				Eventually(ctx, cluster.History(held)).Should(HaveObservedOnly(Added(held),
					Matching(held, And(BeTerminating(), HaveFinalizers(Hold)))))
			}
		})

	Specify("The garbage collector deletes a dependent with the uid as a precondition, so that a new object of the same name remains.",
		Behavior("cascade.background.collector-uid-precondition", Observed, AnyResource, GC, Hook,
			Source("pkg/controller/garbagecollector/garbagecollector.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Hold(child)

			cluster.Delete(ctx, owner, Background)
			review := webhook.AwaitReview(ctx, child)
			Expect(webhooks.DeleteOptionsOf(review).Preconditions).To(HaveField("UID", HaveValue(Equal(child.GetUID()))),
				"the garbage collector sends the uid of the dependent as a precondition")

			// While the collector's delete is under review, a new object takes the name.
			mustBeInTime(cluster.TryPatch(ctx, child, types.MergePatchType, map[string]any{"metadata": map[string]any{"ownerReferences": nil}}))
			mustBeInTime(cluster.TryDelete(ctx, child))
			namesake := cluster.Create(ctx, fixtures.ConfigMap("child"))
			webhook.Allow(child)

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, namesake)).To(BeUnchangedSince(namesake))
		})

	Specify("The dependents of a terminating pod must remain until the pod is removed, and must then be deleted.",
		Behavior("cascade.background.pod-owner", Core, GC,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(pod))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(pod), OwnedBy(other))

			cluster.Delete(ctx, pod, Background)
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveFinalizers()))
			cluster.Delete(ctx, other, Background) // which makes the collector process the remaining owners of the shared one
			Eventually(ctx, cluster.History(shared)).Should(HaveObserved(Matching(shared, BeOwnedBy(pod))))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, child)).To(BeUnchangedSince(child))
			Expect(cluster.Get(ctx, shared)).To(And(BeSameObjectAs(shared), Not(BeTerminating())))

			cluster.Delete(ctx, pod, Grace(0)) // as the kubelet confirms the termination
			Eventually(ctx, cluster.History(child, shared)).Should(HaveObserved(Each(Deleted, child, shared)))
		})
})

// mustBeInTime skips a spec whose write to an object came after the API server's timeout for the webhook that held back its delete.
func mustBeInTime(response Response) {
	GinkgoHelper()
	if apierrors.IsNotFound(response.Err) {
		Skip(response.Action() + ": the API server did not wait for the webhook that reviews the delete of the object")
	}
	Require(response)
}
