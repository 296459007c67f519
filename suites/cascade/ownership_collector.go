package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/events"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// invalidNamespace is the reason of the collector's Event about an owner that cannot be in the namespace of the dependent.
const invalidNamespace = "OwnerRefInvalidNamespace"

// named gives a reference another name than the owner's.
func named(name string) ReferenceOption {
	return func(reference *metav1.OwnerReference) { reference.Name = name }
}

// ofKind gives a reference another API version and kind than the owner's.
func ofKind(apiVersion, kind string) ReferenceOption {
	return func(reference *metav1.OwnerReference) { reference.APIVersion, reference.Kind = apiVersion, kind }
}

var _ = Describe("Resolution of owner references", func() {
	cluster := UseCluster()

	Specify("A dependent of an owner that never existed must be deleted.",
		Behavior("cascade.ownership.nonexistent-owner", Core, GC,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			nobody := fixtures.ConfigMap("nobody")
			nobody.SetUID(uuid.NewUUID())

			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(nobody))

			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Added(dependent), Deleted(dependent)))
		})

	Specify("A dependent of an owner that never existed must be deleted even if a cluster-scoped object refers to the same owner.",
		Behavior("cascade.ownership.nonexistent-owner-shared", Core, GC, Admin,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			nobody := fixtures.ConfigMap("nobody")
			nobody.SetUID(uuid.NewUUID())
			misplaced := cluster.Create(ctx, fixtures.ClusterRole("misplaced"), OwnedBy(nobody))
			cluster.AwaitCollectorSync(ctx, misplaced) // it now knows the owner without a namespace

			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(nobody))

			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Added(dependent), Deleted(dependent)))
		})

	Specify("A dependent of a deleted owner must be deleted even if a new object has the name of the owner.",
		Behavior("cascade.ownership.recreated-owner", Core, AnyResource, GC,
			Source(ownersAndDependents),
			Promise("A valid owner reference consists of the object name and a UID within the same namespace as the dependent "+
				"object.")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			before := cluster.Create(ctx, fixtures.ConfigMap("before"), OwnedBy(owner))
			cluster.Delete(ctx, owner, Background)
			namesake := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			after := cluster.Create(ctx, fixtures.ConfigMap("after"), OwnedBy(owner))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(namesake))

			Eventually(ctx, cluster.History(before, after)).Should(HaveObserved(Each(Deleted, before, after)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, child)).To(BeUnchangedSince(child))
		})

	Specify("The garbage collector keeps a dependent whose owner is of a kind that the API server does not serve.",
		Behavior("cascade.ownership.unknown-kind", Observed, AnyResource, GC,
			Source("pkg/controller/garbagecollector/garbagecollector.go")), func(ctx SpecContext) {
			unknown := fixtures.CustomResource("nobody-serves."+Domain, "unknown")
			unknown.SetUID(uuid.NewUUID())
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(unknown))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner), OwnedBy(unknown))

			cluster.Delete(ctx, owner, Background)

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
			Expect(cluster.Get(ctx, shared)).To(And(BeSameObjectAs(shared), Not(BeTerminating())))
		})

	Specify("A dependent of an owner in another namespace must be deleted, and an OwnerRefInvalidNamespace event must be recorded.",
		Behavior("cascade.ownership.cross-namespace", Core, GC, Namespace,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			elsewhere := cluster.In(cluster.Create(ctx, fixtures.Namespace("elsewhere")))
			owner := elsewhere.Create(ctx, fixtures.ConfigMap("owner"))
			neighbor := elsewhere.Create(ctx, fixtures.ConfigMap("neighbor"), OwnedBy(owner))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))

			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Deleted(dependent)))
			events.Await(ctx, cluster, dependent, invalidNamespace)
			cluster.AwaitCollector(ctx)
			Expect(elsewhere.Get(ctx, owner)).To(BeUnchangedSince(owner))
			Expect(elsewhere.Get(ctx, neighbor)).To(BeUnchangedSince(neighbor))
		})

	Specify("A cluster-scoped object with a namespaced owner must not be deleted, and an OwnerRefInvalidNamespace event must be recorded.",
		Behavior("cascade.ownership.namespaced-owner-of-cluster-scoped", Core, GC, Admin,
			Source(ownersAndDependents),
			Promise("it is treated as having an unresolvable owner reference, and is not able to be garbage collected")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			// The collector records the Event only if it knows the owner when it learns of the reference.
			cluster.AwaitCollectorSync(ctx, owner)
			misplaced := cluster.Create(ctx, fixtures.ClusterRole("misplaced"), OwnedBy(owner))

			events.Await(ctx, cluster, misplaced, invalidNamespace)
			cluster.AwaitCollector(ctx, dependent, misplaced)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))

			cluster.Delete(ctx, owner, Background)
			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Deleted(dependent)))
			cluster.AwaitCollector(ctx, dependent, misplaced)
			Expect(cluster.Get(ctx, misplaced)).To(BeUnchangedSince(misplaced))
		})

	Specify("The namespaced dependents of a cluster-scoped owner must be deleted with the owner, and not before.",
		Behavior("cascade.ownership.cluster-scoped-owner", Core, GC, Admin,
			Source(ownersAndDependents),
			Promise("Namespaced dependents can specify cluster-scoped or namespaced owners.")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ClusterRole("owner"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner), OwnedBy(other))

			cluster.Delete(ctx, other, Background) // which makes the collector look up the owner
			Eventually(ctx, cluster.History(shared)).Should(HaveObserved(Matching(shared, BeOwnedBy(owner))))
			cluster.AwaitCollector(ctx, dependent, owner)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
			Expect(cluster.Get(ctx, shared)).To(And(BeSameObjectAs(shared), Not(BeTerminating())))

			cluster.Delete(ctx, owner, Background)
			Eventually(ctx, cluster.History(dependent, shared)).Should(HaveObserved(Each(Deleted, dependent, shared)))
		})

	Specify("The cluster-scoped dependents of a cluster-scoped owner must be deleted, block the owner, or be orphaned, as the propagation "+
		"policy requires.",
		Behavior("cascade.ownership.cluster-scoped-dependents", Core, GC, Admin, Source(garbageCollection), Promise(canControl)), func(ctx SpecContext) {
			family := func(name string, options ...ObjectOption) (owner, dependent *Object) {
				owner = cluster.Create(ctx, fixtures.ClusterRole(name))
				return owner, cluster.Create(ctx, fixtures.ClusterRole(name+"-dependent"), append(options, OwnedBy(owner, Blocking))...)
			}
			inBackground, collected := family("background")
			inForeground, blocking := family("foreground", Held)
			orphaning, orphan := family("orphan")
			cluster.AwaitCollectorSync(ctx, orphan)

			cluster.Delete(ctx, inBackground, Background)
			cluster.Delete(ctx, inForeground, Foreground)
			cluster.Delete(ctx, orphaning, Orphan)

			Eventually(ctx, cluster.History(inBackground, collected)).Should(HaveObserved(Deleted(inBackground), Deleted(collected)))
			Eventually(ctx, cluster.History(orphaning, orphan)).Should(HaveObserved(Matching(orphan, BeOwnedBy()), Deleted(orphaning)))
			Eventually(ctx, cluster.History(blocking)).Should(HaveObserved(Terminating(blocking)))
			cluster.AwaitCollector(ctx, orphan)
			Expect(cluster.Get(ctx, inForeground)).To(And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents)))
			Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), Not(BeTerminating())))

			cluster.Release(ctx, blocking)
			Eventually(ctx, cluster.History(inForeground, blocking)).Should(HaveObserved(Deleted(blocking), Deleted(inForeground)))
		})

	Specify("A dependent whose owner reference has the right uid but another name or kind is deleted, and other "+
		"dependents of the owner remain.",
		Behavior("cascade.ownership.name-or-kind-mismatch", Observed, GC, Source("kubernetes#65200")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			misnamed := cluster.Create(ctx, fixtures.ConfigMap("misnamed"), OwnedBy(owner, named("somebody")))
			mistaken := cluster.Create(ctx, fixtures.ConfigMap("mistaken"), OwnedBy(owner, ofKind("v1", "Secret")))

			Eventually(ctx, cluster.History(misnamed, mistaken)).Should(HaveObserved(Each(Deleted, misnamed, mistaken)))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, owner)).To(BeUnchangedSince(owner))
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
		})

	Specify("An owner reference must be valid with any served version of the API group of the owner.",
		Behavior("cascade.ownership.any-served-version", Core, GC,
			Source("concepts/overview/kubernetes-api"),
			Promise("The API server handles the conversion between API versions transparently: all the different versions are "+
				"actually representations of the same persisted data.")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.HorizontalPodAutoscaler("owner"))
			byVersion := func(version string) *Object {
				return cluster.Create(ctx, fixtures.ConfigMap(version), OwnedBy(owner, ofKind("autoscaling/"+version, owner.GetKind())))
			}
			one, two := byVersion("v1"), byVersion("v2")

			cluster.AwaitCollector(ctx, one, owner)
			Expect(cluster.Get(ctx, one)).To(BeUnchangedSince(one))
			Expect(cluster.Get(ctx, two)).To(BeUnchangedSince(two))

			cluster.Delete(ctx, owner, Background)
			Eventually(ctx, cluster.History(one, two)).Should(HaveObserved(Each(Deleted, one, two)))
		})
})

var _ = Describe("Changes of owner references", func() {
	cluster := UseCluster()

	Specify("An object that receives an owner reference after its creation must be deleted with the owner.",
		Behavior("cascade.ownership.added-reference", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(manually)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"))
			cluster.AwaitCollectorSync(ctx, dependent) // a collector that starts later would see only the result
			cluster.Update(ctx, dependent, OwnedBy(owner))

			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, dependent)).Should(HaveObserved(Deleted(owner), Deleted(dependent)))
		})

	Specify("An object whose owner reference is removed before the deletion of the owner must not be deleted.",
		Behavior("cascade.ownership.removed-reference", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(manually)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx, dependent) // a collector that starts later would see only the result
			saved := cluster.Update(ctx, dependent, NotOwnedBy(owner))

			cluster.Delete(ctx, owner, Background)

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(saved))
		})

	Specify("A dependent with two owners must remain until both are deleted, and must lose the reference to the owner "+
		"that is deleted first.",
		Behavior("cascade.ownership.two-owners", Core, AnyResource, GC,
			Source(objectMeta), Promise(allOwnersGone)), func(ctx SpecContext) {
			first := cluster.Create(ctx, fixtures.ConfigMap("first"))
			second := cluster.Create(ctx, fixtures.ConfigMap("second"))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(first), OwnedBy(second, Blocking))

			cluster.Delete(ctx, first, Background)
			Eventually(ctx, cluster.History(first, shared)).Should(HaveObserved(Deleted(first), Matching(shared, BeOwnedBy(second))))
			cluster.AwaitCollector(ctx)
			survivor := cluster.Get(ctx, shared)
			Expect(survivor).To(And(BeSameObjectAs(shared), Not(BeTerminating())))
			Expect(survivor.GetOwnerReferences()).To(ConsistOf(ReferenceTo(second, Blocking)), "the other reference is unchanged")

			cluster.Delete(ctx, second, Background)
			Eventually(ctx, cluster.History(second, shared)).Should(HaveObserved(Deleted(second), Deleted(shared)))
		})

	Specify("A dependent remains if, during its delete by the garbage collector, the owner reference is removed or a "+
		"reference to a living owner is added.",
		Behavior("cascade.ownership.changed-during-delete", Observed, AnyResource, GC, Hook, Since("1.34"), Source("kubernetes#114603")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			living := cluster.Create(ctx, fixtures.ConfigMap("living"))
			released := cluster.Create(ctx, fixtures.ConfigMap("released"), OwnedBy(owner))
			adopted := cluster.Create(ctx, fixtures.ConfigMap("adopted"), OwnedBy(owner))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.DuringReview(released, func() { cluster.Update(ctx, released, NotOwnedBy(owner)) })
			webhook.DuringReview(adopted, func() { cluster.Update(ctx, adopted, OwnedBy(living)) })

			cluster.Delete(ctx, owner, Background)
			webhook.AwaitReview(ctx, released)
			webhook.AwaitReview(ctx, adopted)
			webhook.SkipIfWrittenByOthers(released)
			webhook.SkipIfWrittenByOthers(adopted)

			Eventually(ctx, cluster.History(released)).Should(HaveObserved(Matching(released, Not(BeOwnedBy(owner)))))
			Eventually(ctx, cluster.History(adopted)).Should(HaveObserved(Matching(adopted, BeOwnedBy(living))))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, released)).To(And(BeSameObjectAs(released), Not(BeTerminating())))
			Expect(cluster.Get(ctx, adopted)).To(And(BeSameObjectAs(adopted), BeOwnedBy(living), Not(BeTerminating())))
		})
})

var _ = Describe("Dependents", func() {
	cluster := UseCluster()

	Specify("A dependent must remain as long as its owner exists, even if the owner is terminating with a finalizer.",
		Behavior("cascade.ownership.terminating-owner", Core, AnyResource, GC,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"), Held)
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			shared := cluster.Create(ctx, fixtures.ConfigMap("shared"), OwnedBy(owner), OwnedBy(other))

			cluster.Delete(ctx, owner, Background)
			cluster.Delete(ctx, other, Background) // which makes the collector process the remaining owners of the shared one
			Eventually(ctx, cluster.History(shared)).Should(HaveObserved(Matching(shared, BeOwnedBy(owner))))
			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
			Expect(cluster.Get(ctx, shared)).To(And(BeSameObjectAs(shared), Not(BeTerminating())))

			cluster.Release(ctx, owner)
			Eventually(ctx, cluster.History(owner, dependent, shared)).Should(
				HaveObserved(Deleted(owner), Each(Deleted, dependent, shared)))
		})

	Specify("The garbage collector does not delete an Event with an owner reference.",
		Behavior("cascade.ownership.event-dependents", Observed, GC,
			Source("pkg/controller/garbagecollector/graph_builder.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			event := cluster.Create(ctx, fixtures.EventAbout(cluster.Namespace(), "event"), OwnedBy(owner))

			cluster.Delete(ctx, owner, Background)

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, event)).To(BeUnchangedSince(event))
		})
})
