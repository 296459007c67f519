package cascade

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Orphan deletion", func() {
	cluster := UseCluster()

	Specify("Orphan deletion must remove the owner and keep every dependent without the owner reference.",
		Behavior("cascade.orphan.dependents-remain", Core, GC,
			Source(ownersAndDependents), Promise(orphanPolicy)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			var dependents []*Object
			for i := range 50 {
				dependents = append(dependents,
					cluster.Create(ctx, fixtures.ConfigMap(fmt.Sprintf("dependent-%d", i)), OwnedBy(owner, Blocking)))
			}
			secret := cluster.Create(ctx, fixtures.Secret("dependent"), OwnedBy(owner))
			cluster.AwaitCollector(ctx, secret) // the collector has one watch for each kind

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Deleted(owner)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, secret)).To(And(BeSameObjectAs(secret), BeOwnedBy(), Not(BeTerminating())))
			survivors := cluster.List(ctx, owner)
			for _, dependent := range dependents {
				Expect(survivors).To(ContainElement(And(BeSameObjectAs(dependent), BeOwnedBy(), Not(BeTerminating()))))
			}
		})

	Specify("An owner in orphan deletion must keep the orphan finalizer until the owner references of its dependents are removed.",
		Behavior("cascade.orphan.finalizer-first", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(orphanPolicy)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			one := cluster.Create(ctx, fixtures.ConfigMap("one"), OwnedBy(owner))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"), OwnedBy(owner, Blocking))

			cluster.Delete(ctx, owner, Orphan)

			carrying := And(BeTerminating(), HaveFinalizers(metav1.FinalizerOrphanDependents))
			released := func(dependent *Object) EventMatcher { return Matching(dependent, BeOwnedBy()) }
			Eventually(ctx, cluster.History(owner, one, two)).Should(
				HaveObserved(Matching(owner, carrying), Each(released, one, two), Deleted(owner)))
		})

	Specify("Orphan deletion must remove only the reference to the deleted owner from a dependent with several owners.",
		Behavior("cascade.orphan.other-references-stay", Core, AnyResource, GC,
			Source(deleteOptions), Promise("Acceptable values are: 'Orphan' - orphan the dependents")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner), OwnedBy(other, Blocking))

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner, shared)).Should(HaveObserved(Matching(shared, BeOwnedBy(other)), Deleted(owner)))
			cluster.AwaitCollector(ctx)
			survivor := cluster.Get(ctx, shared)
			Expect(survivor).To(And(BeSameObjectAs(shared), Not(BeTerminating())))
			Expect(survivor.GetOwnerReferences()).To(ConsistOf(ReferenceTo(other, Blocking)), "the reference to the other owner is unchanged")
		})

	Specify("Orphan deletion must not change the dependents of an orphaned dependent.",
		Behavior("cascade.orphan.one-level", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(orphanPolicy)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			grandchild := cluster.Create(ctx, fixtures.ConfigMap("grandchild"), OwnedBy(child))

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Deleted(owner)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, child)).To(And(BeOwnedBy(), Not(BeTerminating())))
			Expect(cluster.Get(ctx, grandchild)).To(BeUnchangedSince(grandchild))
		})

	Specify("Orphaned pods of a ReplicaSet must not be garbage-collected, and a new ReplicaSet with the same selector must adopt the pods.",
		Behavior("cascade.orphan.adoption", Core, GC, KCM,
			Source(replicaSets),
			Promise("As long as the old and new `.spec.selector` are the same, then the new one will adopt the old Pods.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			first := cluster.Create(ctx, fixtures.ReplicaSet("set"))
			pods := cluster.AwaitDependents(ctx, first, 2)

			cluster.AwaitCollector(ctx, pods[0]) // the collector knows both pods
			cluster.Delete(ctx, first, Orphan)
			Eventually(ctx, cluster.History(first)).Should(HaveObserved(Deleted(first)))
			cluster.AwaitCollector(ctx, pods[0])
			for _, pod := range pods {
				Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeOwnedBy(), Not(BeTerminating())))
			}

			second := cluster.Create(ctx, fixtures.ReplicaSet("set"), Named("second-"+first.GetName()))
			adopted := func(pod *Object) EventMatcher { return Matching(pod, BeOwnedBy(second)) }
			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(adopted, pods...)))
		})

	Specify("Orphan deletion must remove only the orphan finalizer from the owner, and another finalizer must still hold the owner.",
		Behavior("cascade.orphan.other-finalizer-stays", Core, AnyResource, GC,
			Source(finalizersPage), Promise(untilRemoved)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))

			cluster.Delete(ctx, owner, Orphan)

			onlyHeld := And(BeTerminating(), HaveFinalizers(Hold))
			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Matching(child, BeOwnedBy()), Matching(owner, onlyHeld)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(onlyHeld)
			Expect(cluster.Get(ctx, child)).To(And(BeOwnedBy(), Not(BeTerminating())))
		})

	Specify("Repeated orphan deletes of an object with another finalizer leave no orphan finalizer on the object.",
		Behavior("cascade.orphan.repeated-with-finalizer", Observed, AnyResource, GC, Source("kubernetes#89503")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			onlyHeld := And(BeTerminating(), HaveFinalizers(Hold))

			cluster.Delete(ctx, owner, Orphan)
			Eventually(ctx, cluster.History(owner)).Should(
				HaveObserved(Matching(owner, HaveFinalizer(metav1.FinalizerOrphanDependents)), Matching(owner, onlyHeld)))
			for range 3 {
				cluster.Delete(ctx, owner, Orphan)
			}

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(onlyHeld)
		})
})
