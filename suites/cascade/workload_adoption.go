package cascade

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// adoption is a kind whose objects adopt the dependents of a deleted object of the same name.
type adoption struct {
	kind, page, promise string
	// with changes the workload before it is created.
	with []ObjectOption
}

var adoptions = []adoption{
	{
		kind: "StatefulSet", page: "tutorials/stateful-application/basic-stateful-set",
		promise: "when `web-0` transitioned to Running and Ready, it adopted this Pod.",
	},
	{
		kind: "DaemonSet", page: daemonSets,
		promise: "If you subsequently create a new DaemonSet with the same selector, the new DaemonSet adopts the existing Pods.",
	},
	{
		kind: "Deployment", page: "reference/kubernetes-api/apps/deployment-v1",
		promise: "Existing ReplicaSets whose pods are selected by this will be the ones affected by this deployment.",
	},
	{
		kind: "Job", page: jobs, promise: "they are controlled by Job `new` as well.",
		with: []ObjectOption{withManualSelector},
	},
}

// withManualSelector makes a Job select its pods by all labels of its template. By default it selects them by its own uid.
func withManualSelector(job *Object) {
	labels, _, _ := unstructured.NestedMap(job.Object, "spec", "template", "metadata", "labels")
	WithField(true, "spec", "manualSelector")(job)
	WithField(labels, "spec", "selector", "matchLabels")(job)
}

// behavior is the row of the kind.
func (a adoption) behavior(kind workloadKind) []any {
	options := append([]BehaviorOption{GC, KCM, Source(a.page), Promise(a.promise)}, kind.options...)
	return Behavior("cascade.ownership.adoption."+kind.id(), Core, options...)
}

// adopted deletes a workload with the policy Orphan, creates it again, and expects that it adopts the dependents and creates no others.
func (a adoption) adopted(ctx SpecContext, cluster *Cluster, kind workloadKind) {
	family := kind.family(ctx, cluster, a.with...)
	cluster.AwaitCollectorSync(ctx, kind.makes...)
	cluster.Delete(ctx, family.owner, Orphan)
	Eventually(ctx, cluster.History(family.owner)).Should(HaveObserved(Deleted(family.owner)))

	again := createAgain(ctx, cluster, family.owner)

	adopted := func(child *Object) EventMatcher { return Matching(child, BeOwnedBy(again)) }
	Eventually(ctx, cluster.History(family.children...)).Should(HaveObserved(Each(adopted, family.children...)))
	if kind.name == "Job" {
		Eventually(ctx, cluster.History(again)).Should(HaveObserved(Matching(again, HaveStatus("active", int64(kind.children)))))
	}
	workloads.AwaitController(ctx, cluster, kind.canaries...)
	cluster.AwaitDependents(ctx, again, 0)
	for _, child := range family.children {
		live := cluster.Get(ctx, child)
		Expect(live).NotTo(BeTerminating())
		Expect(live.GetOwnerReferences()).To(ConsistOf(ReferenceTo(again, Controlling, Blocking)))
		cluster.AwaitDependents(ctx, child, kind.grandchildren)
	}
}

// createAgain creates a workload with the name and the spec of a deleted one.
func createAgain(ctx SpecContext, cluster *Cluster, deleted *Object) *Object {
	GinkgoHelper()
	manifest := &Object{Object: map[string]any{"spec": deleted.Object["spec"]}}
	manifest.SetGroupVersionKind(deleted.GroupVersionKind())
	return cluster.Create(ctx, manifest, Named(deleted.GetName()))
}

var _ = Describe("Adoption by recreated workloads", func() {
	cluster := UseCluster()

	for _, adoption := range adoptions {
		kind := workloadKinds[slices.IndexFunc(workloadKinds, func(kind workloadKind) bool { return kind.name == adoption.kind })]
		Specify("A "+kind.name+" that is created again after an orphan deletion must adopt the remaining "+kind.made+" with controller "+
			"and blockOwnerDeletion true, and create no others.",
			adoption.behavior(kind), func(ctx SpecContext) { adoption.adopted(ctx, cluster, kind) })
	}
})

// appLabel is the label in the pod selectors of the fixtures' workloads.
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

// makesOwned returns the behavior of the objects that the kind's controller creates.
func (w workloadKind) makesOwned() []any {
	const automatically = "Kubernetes automatically sets this field to `true` if a controller (for example, the Deployment controller) sets the " +
		"value of the `metadata.ownerReferences` field."
	options := append([]BehaviorOption{KCM, Source(ownersAndDependents), Promise(automatically)}, w.options...)
	return Behavior("cascade.ownership.controllers-set-references."+w.id(), Core, options...)
}

var _ = Describe("Adoption and release of pods", func() {
	cluster := UseCluster()

	// selected creates a pod that matches the selector of workloads with this name.
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
	// bothOrders are the two kinds that only manage a number of pods, in both orders.
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
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"), fixtures.ReplicationController("canary")) // the controllers know the orphans

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
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"), fixtures.ReplicationController("canary")) // the controllers create no more pods
			for i := range bothOrders {
				own := cluster.AwaitDependents(ctx, second[i], 2)
				cluster.AwaitDependents(ctx, first[i], 0)
				onlyOwnedBy(ctx, first[i], orphans[i])
				onlyOwnedBy(ctx, second[i], own)
			}
		})

	Specify("Of two controllers with the same selector, the deletion of one must delete the pods of that one only.",
		Behavior("cascade.ownership.overlapping-controllers", Core, GC, KCM,
			Source(garbageCollection),
			Promise("Owner references help different parts of Kubernetes avoid interfering with objects they don’t control.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			deleted := cluster.Create(ctx, fixtures.ReplicaSet("overlapping"))
			stays := cluster.Create(ctx, fixtures.ReplicaSet("overlapping"), Named("second-"+deleted.GetName()))
			gone, kept := cluster.AwaitDependents(ctx, deleted, 2), cluster.AwaitDependents(ctx, stays, 2)

			cluster.Delete(ctx, deleted, Background)

			Eventually(ctx, cluster.History(gone...)).Should(HaveObserved(Each(Deleted, gone...)))
			cluster.AwaitCollector(ctx, kept[0])
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"))
			cluster.AwaitDependents(ctx, stays, 2)
			onlyOwnedBy(ctx, stays, kept)
			for _, pod := range kept {
				Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
			}
		})

	Specify("A ReplicaSet must not count a pod whose controller reference has its uid but another kind.",
		Behavior("cascade.ownership.controller-reference-of-others", Core, KCM, Since("1.35"),
			Source(ownersAndDependents),
			Promise("A valid owner reference consists of the object name and a UID within the same namespace as the dependent "+
				"object.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.ReplicaSet("counts"))
			own := cluster.AwaitDependents(ctx, set, 2)
			// The garbage collector keeps a dependent of a kind that is not served.
			selected(ctx, "other", "counts", OwnedBy(set, ofKind("nobody-serves."+Domain+"/v1", "Nobody"), Controlling))
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // the controller knows the pod

			cluster.Update(ctx, set, replicas(3))

			cluster.AwaitDependents(ctx, set, 4)
			for _, pod := range own {
				Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
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
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // the controllers know that it is terminating

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
