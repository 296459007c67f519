package cascade

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("an orphaning deletion", func() {
	cluster := UseCluster()

	It("the owner goes, every dependent stays (50 of them), each without the reference to it",
		Behavior("cascade.orphan.dependents-survive", Core, GC), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			var dependents []*Object
			for i := range 50 {
				dependents = append(dependents,
					cluster.Create(ctx, fixtures.ConfigMap(fmt.Sprintf("dependent-%d", i)), OwnedBy(owner, Blocking)))
			}
			secret := cluster.Create(ctx, fixtures.Secret("dependent"), OwnedBy(owner))
			cluster.AwaitCollector(ctx, secret) // it learns of each kind on a watch of its own

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner)).Should(Show(Deleted(owner)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, secret)).To(And(Carry(secret), BeOwnedBy(), Not(BeTerminating())))
			survivors := cluster.List(ctx, owner)
			for _, dependent := range dependents {
				Expect(survivors).To(ContainElement(And(Carry(dependent), BeOwnedBy(), Not(BeTerminating()))))
			}
		})

	It("the owner carries the finalizer orphan until its dependents are released",
		Behavior("cascade.orphan.finalizer-first", Core, GC), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			one := cluster.Create(ctx, fixtures.ConfigMap("one"), OwnedBy(owner))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"), OwnedBy(owner, Blocking))

			answer := cluster.Delete(ctx, owner, Orphan)

			carrying := And(BeTerminating(), HaveFinalizers(metav1.FinalizerOrphanDependents))
			Expect(answer).To(carrying)
			released := func(dependent *Object) Moment { return Seen(dependent, BeOwnedBy()) }
			Eventually(ctx, cluster.History(owner, one, two)).Should(
				Show(Seen(owner, carrying), Each(released, one, two), Deleted(owner)))
		})

	It("only the orphaned owner's reference is removed",
		Behavior("cascade.orphan.other-references-stay", Core, GC), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner), OwnedBy(other, Blocking))

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner, shared)).Should(Show(Seen(shared, BeOwnedBy(other)), Deleted(owner)))
			cluster.AwaitCollector(ctx)
			survivor := cluster.Get(ctx, shared)
			Expect(survivor).To(And(Carry(shared), Not(BeTerminating())))
			Expect(survivor.GetOwnerReferences()).To(ConsistOf(ReferenceTo(other, Blocking)), "the reference to the other owner is as it was")
		})

	It("grandchildren keep their own owner and stay",
		Behavior("cascade.orphan.one-level", Core, GC), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			grandchild := cluster.Create(ctx, fixtures.ConfigMap("grandchild"), OwnedBy(child))

			cluster.Delete(ctx, owner, Orphan)

			Eventually(ctx, cluster.History(owner)).Should(Show(Deleted(owner)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, child)).To(And(BeOwnedBy(), Not(BeTerminating())))
			Expect(cluster.Get(ctx, grandchild)).To(BeUnchangedSince(grandchild))
		})

	It("an orphan is not collected later, and a new controller with the same selector adopts it",
		Behavior("cascade.orphan.stays-orphaned", Core, KCM), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			first := cluster.Create(ctx, fixtures.ReplicaSet("set"))
			Eventually(ctx, cluster.DependentsOf(first)).Should(HaveLen(2))
			pods, err := cluster.DependentsOf(first)()
			Expect(err).NotTo(HaveOccurred())

			cluster.AwaitCollector(ctx, pods[0]) // it knows both pods
			cluster.Delete(ctx, first, Orphan)
			Eventually(ctx, cluster.History(first)).Should(Show(Deleted(first)))
			cluster.AwaitCollector(ctx, pods[0])
			for _, pod := range pods {
				Expect(cluster.Get(ctx, pod)).To(And(Carry(pod), BeOwnedBy(), Not(BeTerminating())))
			}

			second := cluster.Create(ctx, fixtures.ReplicaSet("set"), Named("second-"+first.GetName()))
			adopted := func(pod *Object) Moment { return Seen(pod, BeOwnedBy(second)) }
			Eventually(ctx, cluster.History(pods...)).Should(Show(Each(adopted, pods...)))
		})

	It("the collector removes its own finalizer only",
		Behavior("cascade.orphan.other-finalizer-stays", Core, GC), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))

			cluster.Delete(ctx, owner, Orphan)

			onlyHeld := And(BeTerminating(), HaveFinalizers(Hold))
			Eventually(ctx, cluster.History(owner, child)).Should(Show(Seen(child, BeOwnedBy()), Seen(owner, onlyHeld)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(onlyHeld)
			Expect(cluster.Get(ctx, child)).To(And(BeOwnedBy(), Not(BeTerminating())))
		})
})
