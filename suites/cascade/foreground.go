package cascade

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Foreground deletion", func() {
	cluster := UseCluster()

	// waiting matches an owner that waits for its blocking dependents.
	waiting := And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents))

	Specify("An owner in foreground deletion must have a deletionTimestamp and the finalizer foregroundDeletion, and "+
		"must remain visible to get, list and watch.",
		Behavior("cascade.foreground.deletion-in-progress", Core, AnyResource, GC,
			Source(garbageCollection),
			Promise("The Kubernetes API server also sets the `metadata.finalizers` field to `foregroundDeletion`. The object remains "+
				"visible through the Kubernetes API until the deletion process is complete.")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking), Held)

			cluster.Delete(ctx, owner, Foreground)

			inProgress := And(BeSameObjectAs(owner), BeTerminating(), HaveFinalizers(metav1.FinalizerDeleteDependents))
			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Matching(owner, inProgress), Terminating(child)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(inProgress)
			Expect(cluster.List(ctx, owner)).To(ContainElement(inProgress))
		})

	Specify("Foreground deletion must remove the owner only after every dependent with blockOwnerDeletion true.",
		Behavior("cascade.foreground.blocking-dependents-first", Core, GC,
			Source(ownersAndDependents), Promise(blockingFirst)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			free := cluster.Create(ctx, fixtures.ConfigMap("free"), OwnedBy(owner, Blocking))
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), OwnedBy(owner, Blocking), Held)
			secret := cluster.Create(ctx, fixtures.Secret("secret"), OwnedBy(owner, Blocking), Held)
			cluster.AwaitCollector(ctx, secret) // the collector has one watch for each kind

			cluster.Delete(ctx, owner, Foreground)
			Eventually(ctx, cluster.History(owner, free)).Should(HaveObserved(Terminating(owner), Deleted(free)))
			Eventually(ctx, cluster.History(owner, held)).Should(HaveObserved(Terminating(owner), Terminating(held)))
			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Terminating(secret)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(waiting)

			cluster.Release(ctx, held)
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(waiting)

			cluster.Release(ctx, secret)
			Eventually(ctx, cluster.History(owner, free, held)).Should(HaveObserved(Deleted(free), Deleted(held), Deleted(owner)))
		})

	Specify("Foreground deletion must delete dependents without blockOwnerDeletion true, and must not wait for their removal.",
		Behavior("cascade.foreground.non-blocking-dependents", Core, AnyResource, GC,
			Source(garbageCollection), Promise(onlyBlocking)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			saysFalse := cluster.Create(ctx, fixtures.ConfigMap("says-false"), OwnedBy(owner, NonBlocking), Held)
			saysNothing := cluster.Create(ctx, fixtures.ConfigMap("says-nothing"), OwnedBy(owner), Held)

			cluster.Delete(ctx, owner, Foreground)

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Terminating(owner), Deleted(owner)))
			Eventually(ctx, cluster.History(saysFalse, saysNothing)).Should(HaveObserved(Each(Terminating, saysFalse, saysNothing)))
			for _, dependent := range []*Object{saysFalse, saysNothing} {
				dependent = cluster.Get(ctx, dependent)
				skipIfOwner(ctx, cluster, dependent)
				Expect(dependent).To(HaveFinalizers(Hold))
			}
		})

	Specify("Foreground deletion of a chain of blocking dependents must remove each dependent before its owner.",
		Behavior("cascade.foreground.bottom-up", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(blockingFirst)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking))
			grandchild := cluster.Create(ctx, fixtures.ConfigMap("grandchild"), OwnedBy(child, Blocking), Held)

			cluster.Delete(ctx, owner, Foreground)
			Eventually(ctx, cluster.History(owner, child, grandchild)).Should(
				HaveObserved(Terminating(owner), Terminating(child), Terminating(grandchild)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(waiting)
			Expect(cluster.Get(ctx, child)).To(waiting)

			cluster.Release(ctx, grandchild)
			Eventually(ctx, cluster.History(owner, child, grandchild)).Should(
				HaveObserved(Deleted(grandchild), Deleted(child), Deleted(owner)))
		})

	Specify("Foreground deletion must remove an owner without dependents.",
		Behavior("cascade.foreground.no-dependents", Core, AnyResource, GC,
			Source(garbageCollection), Promise(afterDependents)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))

			cluster.Delete(ctx, owner, Foreground)

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Matching(owner, waiting), Deleted(owner)))
		})

	Specify("A dependent with another living owner must lose the reference to an owner in foreground deletion, and "+
		"must neither be deleted nor block that owner.",
		Behavior("cascade.foreground.other-owner", Core, AnyResource, GC,
			Source("conformance: Garbage Collector, multiple owners"),
			Promise("Half of the Pods that has RC2 as owner MUST not be deleted or have a deletion timestamp.")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner, Blocking), OwnedBy(other))

			cluster.Delete(ctx, owner, Foreground)

			Eventually(ctx, cluster.History(owner, shared)).Should(
				HaveObserved(Terminating(owner), Matching(shared, BeOwnedBy(other)), Deleted(owner)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, shared)).To(And(BeOwnedBy(other), Not(BeTerminating())))
		})

	Specify("Foreground deletion must remove only the foregroundDeletion finalizer after the dependents, and another "+
		"finalizer must still hold the owner.",
		Behavior("cascade.foreground.other-finalizer", Core, AnyResource, GC,
			Source(finalizersPage), Promise(untilRemoved)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking))

			cluster.Delete(ctx, owner, Foreground)

			onlyHeld := And(BeTerminating(), HaveFinalizers(Hold))
			Eventually(ctx, cluster.History(owner, child)).Should(
				HaveObserved(Matching(owner, waiting), Deleted(child), Matching(owner, onlyHeld)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(onlyHeld)

			cluster.Release(ctx, owner)
			Expect(cluster.TryGet(ctx, owner)).To(BeGone())
		})

	Specify("Foreground deletion must delete all objects that own each other in a circle.",
		Behavior("cascade.foreground.circle", Core, AnyResource, GC,
			Source("conformance: Garbage Collector, dependency cycle"),
			Promise("Delete pod1 MUST delete all pods. The dependency cycle MUST not block the garbage collection.")), func(ctx SpecContext) {
			one := cluster.Create(ctx, fixtures.ConfigMap("one"))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"), OwnedBy(one, Blocking))
			three := cluster.Create(ctx, fixtures.ConfigMap("three"), OwnedBy(two, Blocking))
			cluster.Update(ctx, one, OwnedBy(three, Blocking))

			cluster.Delete(ctx, one, Foreground)

			Eventually(ctx, cluster.History(one, two, three)).Should(HaveObserved(Each(Deleted, one, two, three)))
		})
})

var _ = Describe("Changes during a foreground deletion", func() {
	cluster := UseCluster()

	waiting := And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents))

	// waitingOwner creates an owner that waits for its only dependent, which is held.
	waitingOwner := func(ctx SpecContext) (owner, child *Object) {
		GinkgoHelper()
		owner = cluster.Create(ctx, fixtures.ConfigMap("owner"))
		child = cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner, Blocking), Held)
		cluster.Delete(ctx, owner, Foreground)
		Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Terminating(owner), Terminating(child)))
		skipIfOwner(ctx, cluster, cluster.Get(ctx, child))
		return owner, child
	}

	Specify("Setting blockOwnerDeletion to false on a dependent must let the foreground deletion of its owner complete.",
		Behavior("cascade.foreground.unblocked", Core, AnyResource, GC,
			Source(garbageCollection), Promise(onlyBlocking)), func(ctx SpecContext) {
			owner, child := waitingOwner(ctx)

			cluster.Update(ctx, child, NotOwnedBy(owner), OwnedBy(owner, NonBlocking))

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Deleted(owner)))
			Expect(cluster.Get(ctx, child)).To(And(BeTerminating(), HaveFinalizers(Hold)))
		})

	Specify("Removing the owner reference of a dependent must let the foreground deletion of its owner complete.",
		Behavior("cascade.foreground.reference-removed", Core, AnyResource, GC,
			Source(ownerReferences), Promise(whileReferring)), func(ctx SpecContext) {
			owner, child := waitingOwner(ctx)

			cluster.Update(ctx, child, NotOwnedBy(owner))

			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Deleted(owner)))
			Expect(cluster.Get(ctx, child)).To(And(BeTerminating(), HaveFinalizers(Hold)))
		})

	Specify("A blocking dependent that is created during the foreground deletion of its owner is deleted and blocks the owner.",
		Behavior("cascade.foreground.late-dependent", Observed, AnyResource, GC,
			Source("pkg/controller/garbagecollector/garbagecollector.go")), func(ctx SpecContext) {
			owner, child := waitingOwner(ctx)

			late := cluster.Create(ctx, fixtures.ConfigMap("late"), OwnedBy(owner, Blocking), Held)
			cluster.AwaitCollector(ctx) // the collector may request the child and find it gone before it knows the late one
			cluster.Release(ctx, child)
			Eventually(ctx, cluster.History(child)).Should(HaveObserved(Deleted(child)))
			Eventually(ctx, cluster.History(late)).Should(HaveObserved(Terminating(late))) // earlier, if the collector looks at the owner again
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(waiting)

			cluster.Release(ctx, late)
			Eventually(ctx, cluster.History(owner, child, late)).Should(HaveObserved(Deleted(child), Deleted(late), Deleted(owner)))
		})

	Specify("A repeated delete with the propagation policy Orphan turns a foreground deletion into an orphan deletion.",
		Behavior("cascade.foreground.changed-to-orphan", Observed, AnyResource, GC,
			Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			owner, child := waitingOwner(ctx)

			response := Require(cluster.TryDelete(ctx, owner, Orphan))

			Expect(response).To(And(BeTerminating(), HaveFinalizers(metav1.FinalizerOrphanDependents)))
			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Matching(child, BeOwnedBy()), Deleted(owner)))
			Expect(cluster.Get(ctx, child)).To(HaveFinalizers(Hold))
		})

	Specify("Repeated foreground deletes of an object with another finalizer leave no foregroundDeletion finalizer on the object.",
		Behavior("cascade.foreground.repeated-with-finalizer", Observed, AnyResource, GC,
			Source("pkg/controller/garbagecollector/garbagecollector.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			onlyHeld := And(BeTerminating(), HaveFinalizers(Hold))

			cluster.Delete(ctx, owner, Foreground)
			Eventually(ctx, cluster.History(owner)).Should(HaveObserved(Matching(owner, waiting), Matching(owner, onlyHeld)))
			for range 3 {
				cluster.Delete(ctx, owner, Foreground)
			}

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(onlyHeld)
		})

	Specify("A background delete of an owner in foreground deletion is refused with 409 if it requires the current resourceVersion.",
		Behavior("cascade.foreground.current-version-refused", Observed, AnyResource, GC,
			Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			owner, _ := waitingOwner(ctx)
			cluster.AwaitCollector(ctx) // it no longer changes the owner
			before := cluster.Get(ctx, owner)

			Expect(cluster.TryDelete(ctx, owner, Background, IfVersion(before.GetResourceVersion()))).To(HaveStatusCode(http.StatusConflict))
			Expect(cluster.Get(ctx, owner)).To(BeUnchangedSince(before))

			cluster.Delete(ctx, owner, Background, IfUID(owner.GetUID()))
			Expect(cluster.TryGet(ctx, owner)).To(BeGone())
		})

	Specify("A repeated delete of an owner in foreground deletion must not change its finalizer, its deletionTimestamp "+
		"or its blocking dependents.",
		Behavior("cascade.foreground.repeated-delete", Core, AnyResource, GC,
			Source(ownerReferences), Promise(whileReferring)), func(ctx SpecContext) {
			owner, child := waitingOwner(ctx)
			waitingBefore, childBefore := cluster.Get(ctx, owner), cluster.Get(ctx, child)

			cluster.Tick(ctx) // so that another deletionTimestamp would differ
			for _, repeat := range [][]DeleteOption{{Foreground}, {}} {
				cluster.Delete(ctx, owner, repeat...)
			}
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(And(waiting, HaveDeletionTimestamp(waitingBefore.GetDeletionTimestamp())))
			Expect(cluster.Get(ctx, child)).To(BeUnchangedSince(childBefore))

			cluster.Release(ctx, child)
			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Deleted(child), Deleted(owner)))
		})
})

var _ = Describe("Foreground deletion of pods", func() {
	cluster := UseCluster()

	Specify("A pod in foreground deletion must be removed after both the removal of its blocking dependents and the "+
		"confirmation of its grace period, in either order.",
		Behavior("cascade.foreground.pod-owner", Core, GC,
			Source(objectMeta),
			Promise("The resource is expected to be deleted ... after the time in this field, once the finalizers list is empty.")), func(ctx SpecContext) {
			late := cluster.Create(ctx, fixtures.GhostBoundPod("late"))
			early := cluster.Create(ctx, fixtures.GhostBoundPod("early"))
			free := cluster.Create(ctx, fixtures.ConfigMap("free"), OwnedBy(late, Blocking))
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), OwnedBy(early, Blocking), Held)
			cluster.AwaitCollector(ctx, free) // the collector has one watch for each kind

			for _, pod := range []*Object{late, early} {
				cluster.Delete(ctx, pod, Foreground)
				awaiting := And(BeTerminating(), HaveGracePeriod(30), HaveFinalizers(metav1.FinalizerDeleteDependents))
				Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, awaiting)))
			}
			Eventually(ctx, cluster.History(free)).Should(HaveObserved(Deleted(free)))
			Eventually(ctx, cluster.History(held)).Should(HaveObserved(Terminating(held)))
			Eventually(ctx, cluster.History(late)).Should(HaveObserved(Matching(late, And(BeTerminating(), HaveFinalizers()))))
			cluster.Delete(ctx, early, Grace(0)) // as the kubelet confirms the termination
			cluster.AwaitCollector(ctx, free)
			Expect(cluster.Get(ctx, late)).To(And(BeTerminating(), HaveGracePeriod(30)))
			Expect(cluster.Get(ctx, early)).To(And(BeTerminating(), HaveFinalizers(metav1.FinalizerDeleteDependents)))

			cluster.Delete(ctx, late, Grace(0))
			cluster.Release(ctx, held)
			Expect(cluster.TryGet(ctx, late)).To(BeGone())
			Eventually(ctx, cluster.History(early)).Should(HaveObserved(Deleted(early)))
		})
})

// dependentPolling is the interval for looking for dependents.
const dependentPolling = 50 * time.Millisecond

// skipIfOwner skips a spec about objects without dependents when a controller creates dependents for objects of this kind: the collector
// deletes such an object in the foreground for an owner that waits. It checks only objects that were deleted in that way.
func skipIfOwner(ctx SpecContext, cluster *Cluster, object *Object) {
	GinkgoHelper()
	if !isTested(cluster, object) || object.GetNamespace() == "" || !slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return
	}
	owner := cluster.Create(ctx, fixtures.ConfigMap("has-dependents"))
	var dependent string
	looking := NewGomega(func(string, ...int) {}) // finding none is not a failure
	looking.Eventually(ctx, func() string {
		dependent = dependentOf(ctx, cluster, owner)
		return dependent
	}).WithTimeout(cluster.Session().Timeout()).WithPolling(dependentPolling).ShouldNot(BeEmpty())
	if dependent != "" {
		Skip(fmt.Sprintf("others make dependents of each %s (%s), which the garbage collector deletes first", object.GetKind(), dependent))
	}
}

// isTested reports whether an object is of the resource under test (--resource).
func isTested(cluster *Cluster, object *Object) bool {
	tested := cluster.Session().Resource
	return tested != nil && tested.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind()
}

// dependentOf describes a dependent in an owner's namespace; empty when there is none.
func dependentOf(ctx SpecContext, cluster *Cluster, owner *Object) string {
	collections, _ := cluster.Session().Harness.Removable(owner.GetNamespace())
	for _, collection := range collections {
		objects, _ := cluster.Session().Harness.List(ctx, collection, "")
		for _, object := range objects {
			for _, reference := range object.GetOwnerReferences() {
				if reference.UID == owner.GetUID() {
					return fmt.Sprintf("%s %q", object.GetKind(), object.GetName())
				}
			}
		}
	}
	return ""
}
