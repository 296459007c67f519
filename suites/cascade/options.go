package cascade

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// beInvalid matches the rejection of an invalid request. The documentation does not specify which of the two codes applies to delete
// options.
func beInvalid() types.GomegaMatcher {
	return Or(HaveStatusCode(http.StatusBadRequest), HaveStatusCode(http.StatusUnprocessableEntity))
}

// byDefault is a sentence of useCascadingDeletion.
const byDefault = "By default, Kubernetes uses background cascading deletion to delete dependents of an object."

// scaledToZero sets the replicas of a workload to 0.
func scaledToZero(workload *Object) {
	spec, _ := workload.Object["spec"].(map[string]any)
	for _, field := range []string{"replicas", "parallelism"} {
		if _, has := spec[field]; has {
			spec[field] = int64(0)
		}
	}
}

var _ = Describe("Propagation options", func() {
	cluster := UseCluster()

	// pair creates an owner and a dependent of the same kind.
	pair := func(ctx SpecContext, name string) (owner, dependent *Object) {
		owner = cluster.Create(ctx, fixtures.ConfigMap("owner-"+name))
		return owner, cluster.Create(ctx, fixtures.ConfigMap("dependent-"+name), OwnedBy(owner))
	}

	Specify("A delete with the deprecated option orphanDependents true, in the body or as a query parameter, must orphan the dependents.",
		Behavior("cascade.options.orphan-dependents-true", Core, AnyResource, GC,
			Source(deleteOptions), Promise(orphanDependents)), func(ctx SpecContext) {
			one, inBody := pair(ctx, "body")
			two, inQuery := pair(ctx, "query")

			cluster.Delete(ctx, one, OrphanDependents(true))
			cluster.Delete(ctx, two, OrphanDependents(true), InQuery)

			for _, owner := range []*Object{one, two} {
				Eventually(ctx, cluster.History(owner)).Should(
					HaveObserved(Matching(owner, HaveFinalizers(metav1.FinalizerOrphanDependents)), Deleted(owner)))
			}
			cluster.AwaitCollector(ctx)
			for _, orphan := range []*Object{inBody, inQuery} {
				Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), BeOwnedBy(), Not(BeTerminating())))
			}
		})

	Specify("A delete with the deprecated option orphanDependents false, in the body or as a query parameter, must be "+
		"a background deletion.",
		Behavior("cascade.options.orphan-dependents-false", Core, GC,
			Source(deleteOptions), Promise(orphanDependents)), func(ctx SpecContext) {
			// Owners whose dependents would otherwise be orphaned and awaited.
			orphans := WithFinalizers(metav1.FinalizerOrphanDependents)
			one, two := cluster.Create(ctx, fixtures.ConfigMap("one"), orphans), cluster.Create(ctx, fixtures.ConfigMap("two"), orphans)
			inBody := cluster.Create(ctx, fixtures.ConfigMap("body"), OwnedBy(one, Blocking))
			inQuery := cluster.Create(ctx, fixtures.ConfigMap("query"), OwnedBy(two, Blocking))

			cluster.Delete(ctx, one, OrphanDependents(false))
			cluster.Delete(ctx, two, OrphanDependents(false), InQuery)

			Expect(cluster.TryGet(ctx, one)).To(BeGone())
			Expect(cluster.TryGet(ctx, two)).To(BeGone())
			Eventually(ctx, cluster.History(inBody, inQuery)).Should(HaveObserved(Each(Deleted, inBody, inQuery)))
		})

	Specify("A delete with orphanDependents false of an object that remains returns 202, and every other delete "+
		"returns 200, each with the object.",
		Behavior("cascade.options.accepted-status", Observed, AnyResource, Source("apiserver/pkg/endpoints/handlers/delete.go")), func(ctx SpecContext) {
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)
			free := cluster.Create(ctx, fixtures.ConfigMap("free"))

			deleted := Require(cluster.TryDelete(ctx, free, OrphanDependents(false)))
			SkipIfHeldByOtherManagers(deleted.Object)
			Expect(deleted).To(HaveStatusCode(http.StatusOK))
			asItIs := And(BeSameObjectAs(held), BeTerminating(), HaveFinalizer(Hold))
			silent := func(*DeleteRequest) {}
			for _, option := range []DeleteOption{silent, Background, Foreground, Orphan, OrphanDependents(true)} {
				Expect(Require(cluster.TryDelete(ctx, held, option))).To(And(HaveStatusCode(http.StatusOK), asItIs))
			}
			Expect(Require(cluster.TryDelete(ctx, held, OrphanDependents(false)))).To(And(HaveStatusCode(http.StatusAccepted), asItIs))
		})

	// refused expects options to be rejected in the body and in the query, and nothing to be deleted.
	refused := func(ctx SpecContext, options ...DeleteOption) {
		GinkgoHelper()
		object := cluster.Create(ctx, fixtures.ConfigMap("object"))
		Expect(cluster.TryDelete(ctx, object, options...)).To(beInvalid())
		Expect(cluster.TryDeleteCollection(ctx, object, options...)).To(beInvalid())
		Expect(cluster.TryDelete(ctx, object, append(options, InQuery)...)).To(beInvalid())
		Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		cluster.Delete(ctx, object) // its name is reused
	}

	Specify("A delete with both orphanDependents and propagationPolicy must be refused as invalid and delete nothing.",
		Behavior("cascade.options.conflicting-options", Core, AnyResource,
			Source(deleteOptions), Promise("Either this field or PropagationPolicy may be set, but not both.")), func(ctx SpecContext) {
			refused(ctx, OrphanDependents(true), Orphan)
			refused(ctx, OrphanDependents(false), Background)
		})

	Specify("A delete with an unknown propagationPolicy must be refused as invalid and delete nothing.",
		Behavior("cascade.options.unknown-policy", Core, AnyResource,
			Source(deleteOptions), Promise("Acceptable values are: 'Orphan' ... 'Background' ... 'Foreground'")), func(ctx SpecContext) {
			refused(ctx, Policy("Sideways"))
			refused(ctx, Policy("orphan"))
		})

	Specify("A delete of an Event adds no finalizer of the garbage collector, regardless of the propagation policy.",
		Behavior("cascade.options.events", Observed, Source("pkg/registry/core/event/strategy.go")), func(ctx SpecContext) {
			held := cluster.Create(ctx, fixtures.EventAbout(cluster.Namespace(), "held"), Held)
			for _, policy := range []DeleteOption{Foreground, Orphan, OrphanDependents(true)} {
				free := cluster.Create(ctx, fixtures.EventAbout(cluster.Namespace(), "free"))

				cluster.Delete(ctx, free, policy)
				cluster.Delete(ctx, held, policy)

				Expect(cluster.TryGet(ctx, free)).To(BeGone())
				Expect(cluster.Get(ctx, held)).To(And(BeTerminating(), HaveFinalizers(Hold)))
			}
		})
})

var _ = Describe("Default propagation policies", func() {
	cluster := UseCluster()

	// ownersOf creates an owner of each kind without pods, and a dependent of each.
	ownersOf := func(ctx SpecContext, kinds ...func(name string) *Object) (owners, dependents []*Object) {
		for _, kind := range kinds {
			manifest := kind("owner")
			owner := cluster.Create(ctx, manifest, scaledToZero)
			owners = append(owners, owner)
			dependents = append(dependents, cluster.Create(ctx, fixtures.ConfigMap("of-"+strings.ToLower(owner.GetKind())), OwnedBy(owner)))
		}
		return owners, dependents
	}

	// inTheBackground expects owners to be deleted immediately without options, and their dependents to be collected.
	inTheBackground := func(ctx SpecContext, owners, dependents []*Object) {
		GinkgoHelper()
		for _, owner := range owners {
			cluster.Delete(ctx, owner)
			Expect(cluster.TryGet(ctx, owner)).To(BeGone())
		}
		Eventually(ctx, cluster.History(dependents...)).Should(HaveObserved(Each(Deleted, dependents...)))
	}

	Specify("A delete without a propagation policy of a ConfigMap, Deployment, ReplicaSet, StatefulSet, DaemonSet or "+
		"CronJob must be a background deletion.",
		Behavior("cascade.options.default-background", Core, GC,
			Source(useCascadingDeletion), Promise(byDefault)), func(ctx SpecContext) {
			daemons := func(name string) *Object { return fixtures.DaemonSet(name, Domain+"/no-node", "has-this") }
			owners, dependents := ownersOf(ctx, fixtures.ConfigMap, fixtures.Deployment, fixtures.ReplicaSet, fixtures.StatefulSet,
				daemons, fixtures.CronJob)
			inTheBackground(ctx, owners, dependents)
		})

	Specify("A delete without a propagation policy of a custom resource must be a background deletion.",
		Behavior("cascade.options.default-background-custom", Core, GC, CRD, SharedKind,
			Source(useCascadingDeletion), Promise(byDefault)), func(ctx SpecContext) {
			owners, dependents := ownersOf(ctx, definitions.Shared(ctx, cluster))
			inTheBackground(ctx, owners, dependents)
		})

	Specify("A delete without a propagation policy of a ReplicationController or Job orphans the dependents.",
		Behavior("cascade.options.default-orphan", Observed, GC, Source("pkg/registry/batch/job/strategy.go")), func(ctx SpecContext) {
			owners, dependents := ownersOf(ctx, fixtures.ReplicationController, fixtures.Job)
			cluster.AwaitCollector(ctx, dependents[0]) // the collector has one watch for each kind

			for _, owner := range owners {
				cluster.Delete(ctx, owner)
			}

			for i, owner := range owners {
				orphaning := Matching(owner, HaveFinalizer(metav1.FinalizerOrphanDependents))
				Eventually(ctx, cluster.History(owner)).Should(HaveObserved(orphaning, Deleted(owner)))
				Eventually(ctx, cluster.History(dependents[i])).Should(HaveObserved(Matching(dependents[i], BeOwnedBy())))
			}
			cluster.AwaitCollector(ctx, dependents[0])
			for _, orphan := range dependents {
				Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), BeOwnedBy(), Not(BeTerminating())))
			}
		})
})
