package cascade

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// appLabel is what workloads of the fixtures select their pods by.
const appLabel = "app"

var _ = Describe("Owner references set by controllers", func() {
	cluster := UseCluster()

	for _, kind := range workloadKinds {
		Specify("The "+kind.made+" of a "+kind.name+" must have an owner reference with controller and blockOwnerDeletion true.",
			kind.makesOwned(), func(ctx SpecContext) {
				family := kind.family(ctx, cluster)

				for _, child := range family.children {
					Expect(child.GetOwnerReferences()).To(ConsistOf(ReferenceTo(family.owner, Controlling, Blocking)))
				}
				for _, pod := range family.grandchildren {
					Expect(pod.GetOwnerReferences()).To(ConsistOf(ReferenceTo(family.children[0], Controlling, Blocking)))
				}
			})
	}
})

// makesOwned is the row of what the kind's controller makes.
func (w workloadKind) makesOwned() []any {
	const automatically = "Kubernetes automatically sets this field to `true` if a controller (for example, the Deployment controller) sets the " +
		"value of the `metadata.ownerReferences` field."
	requirements := append([]Requirement{KCM, Source(ownersAndDependents), Promise(automatically)}, w.needs...)
	return Behavior("cascade.ownership.controllers-set-references."+w.id(), Core, requirements...)
}

var _ = Describe("Adoption and release of pods", func() {
	cluster := UseCluster()

	// selected makes a pod that workloads of this name select.
	selected := func(ctx SpecContext, name, workload string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.UnscheduledPod(name), append(options, WithLabel(appLabel, workload))...)
	}
	onlyOwnedBy := func(ctx SpecContext, controller *Object, pods []*Object) {
		GinkgoHelper()
		for _, pod := range pods {
			Expect(cluster.Get(ctx, pod).GetOwnerReferences()).To(ConsistOf(ReferenceTo(controller, Controlling, Blocking)))
		}
	}
	// bothOrders are the two kinds that are nothing but a number of pods, one before the other.
	bothOrders := [][]func(string) *Object{
		{fixtures.ReplicaSet, fixtures.ReplicationController}, {fixtures.ReplicationController, fixtures.ReplicaSet},
	}

	Specify("A ReplicaSet or ReplicationController must adopt orphaned pods that match its selector, and must not "+
		"adopt pods that another controller owns.",
		Behavior("cascade.ownership.selector-adoption", Core, KCM,
			Source(replicaSets),
			Promise("If there is a Pod that has no OwnerReference ... and it matches a ReplicaSet's selector, it will be immediately "+
				"acquired by said ReplicaSet.")), func(ctx SpecContext) {
			var first, second []*Object
			orphans := [][]*Object{}
			for i := range bothOrders {
				name := fmt.Sprintf("adopted-%d", i)
				orphans = append(orphans, []*Object{selected(ctx, name+"-one", name), selected(ctx, name+"-two", name)})
			}
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"), fixtures.ReplicationController("canary")) // they know of the orphans

			for i, kinds := range bothOrders {
				controller := cluster.Create(ctx, kinds[0](fmt.Sprintf("adopted-%d", i)))
				adopted := func(pod *Object) EventMatcher { return Matching(pod, BeOwnedBy(controller)) }
				Eventually(ctx, cluster.History(orphans[i]...)).Should(HaveObserved(Each(adopted, orphans[i]...)))
				first = append(first, controller)
				second = append(second, cluster.Create(ctx, kinds[1](fmt.Sprintf("adopted-%d", i)), Named("second-"+controller.GetName())))
			}

			for _, controller := range second {
				cluster.AwaitDependents(ctx, controller, 2)
			}
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"), fixtures.ReplicationController("canary")) // none makes one more
			for i := range bothOrders {
				own := cluster.AwaitDependents(ctx, second[i], 2)
				cluster.AwaitDependents(ctx, first[i], 0)
				onlyOwnedBy(ctx, first[i], orphans[i])
				onlyOwnedBy(ctx, second[i], own)
			}
		})

	Specify("A terminating controller does not adopt pods, and a terminating pod is not adopted.",
		Behavior("cascade.ownership.no-adoption-while-terminating", Observed, KCM,
			Source("pkg/controller/controller_ref_manager.go")), func(ctx SpecContext) {
			terminating := cluster.Create(ctx, fixtures.ReplicaSet("terminating"), WithField(int64(0), "spec", "replicas"), Held)
			cluster.Delete(ctx, terminating)
			orphan := selected(ctx, "orphan", "terminating")
			ending := selected(ctx, "ending", "living", Held)
			cluster.Delete(ctx, ending)
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // controllers know that it is terminating

			cluster.Create(ctx, fixtures.ReplicationController("living"))
			cluster.Create(ctx, fixtures.DaemonSet("living", nodeLabel, "nowhere"))

			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"), fixtures.ReplicationController("canary"),
				fixtures.DaemonSet("canary", nodeLabel, "nowhere"))
			Expect(cluster.Get(ctx, orphan)).To(BeUnchangedSince(orphan))
			Expect(cluster.Get(ctx, ending)).To(And(BeTerminating(), BeOwnedBy()))
		})

	Specify("A pod that no longer matches the selector of its ReplicaSet or ReplicationController must lose the owner "+
		"reference, be replaced, and outlive the controller.",
		Behavior("cascade.ownership.released-by-label", Core, GC, KCM,
			Source(replicaSets),
			Promise("You can remove Pods from a ReplicaSet by changing their labels. ... Pods that are removed in this way will be "+
				"replaced automatically")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			var controllers, released, replacements []*Object
			for _, manifest := range bothOrders[0] {
				controller := cluster.Create(ctx, manifest("released"), WithField(int64(1), "spec", "replicas"))
				pod := cluster.AwaitDependents(ctx, controller, 1)[0]
				cluster.Update(ctx, pod, WithLabel(appLabel, "nobody"))
				Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, BeOwnedBy())))
				released, controllers = append(released, pod), append(controllers, controller)
			}
			for _, controller := range controllers {
				replacements = append(replacements, cluster.AwaitDependents(ctx, controller, 2)[1])
			}

			for _, controller := range controllers {
				cluster.Delete(ctx, controller, Background)
			}

			Eventually(ctx, cluster.History(replacements...)).Should(HaveObserved(Each(Deleted, replacements...)))
			cluster.AwaitCollector(ctx, released[0])
			for _, pod := range released {
				Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeOwnedBy(), Not(BeTerminating())))
			}
		})
})
