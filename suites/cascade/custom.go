package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

var _ = Describe("Garbage collection of custom resources", func() {
	cluster := UseCluster()

	// family is an owner with a dependent of the same kind and one of another kind.
	type family struct{ owner, own, other *Object }
	// families creates one with a custom owner and one with a built-in owner, and waits until the collector knows both kinds.
	families := func(ctx SpecContext, dependents ...ObjectOption) []family {
		GinkgoHelper()
		thing := definitions.Shared(ctx, cluster)
		create := func(kind func(string) *Object, name string, owner *Object) *Object {
			return cluster.Create(ctx, kind(name), append([]ObjectOption{OwnedBy(owner, Blocking)}, dependents...)...)
		}
		custom, builtIn := cluster.Create(ctx, thing("owner")), cluster.Create(ctx, fixtures.ConfigMap("owner"))
		families := []family{
			{custom, create(thing, "of-custom", custom), create(fixtures.ConfigMap, "of-custom", custom)},
			{builtIn, create(fixtures.ConfigMap, "of-built-in", builtIn), create(thing, "of-built-in", builtIn)},
		}
		cluster.AwaitCollector(ctx, custom, builtIn) // the collector has one watch for each kind
		return families
	}

	Specify("Background deletion of a custom resource or a built-in object must delete dependents of both kinds.",
		Behavior("cascade.custom.background", Core, GC, CRD, SharedKind,
			Source(garbageCollection), Promise(inBackground)), func(ctx SpecContext) {
			families := families(ctx)

			for _, family := range families {
				cluster.Delete(ctx, family.owner, Background)
				Expect(cluster.TryGet(ctx, family.owner)).To(BeGone())
			}

			for _, family := range families {
				Eventually(ctx, cluster.History(family.owner, family.own)).Should(HaveObserved(Deleted(family.owner), Deleted(family.own)))
				Eventually(ctx, cluster.History(family.other)).Should(HaveObserved(Deleted(family.other)))
			}
		})

	Specify("Foreground deletion of a custom resource or a built-in object must wait for blocking dependents of both kinds.",
		Behavior("cascade.custom.foreground", Core, GC, CRD, SharedKind,
			Source(ownersAndDependents), Promise(blockingFirst)), func(ctx SpecContext) {
			families := families(ctx, Held)

			for _, family := range families {
				cluster.Delete(ctx, family.owner, Foreground)
			}

			waiting := And(BeTerminating(), HaveFinalizers(metav1.FinalizerDeleteDependents))
			for _, family := range families {
				Eventually(ctx, cluster.History(family.own)).Should(HaveObserved(Terminating(family.own)))
				Eventually(ctx, cluster.History(family.other)).Should(HaveObserved(Terminating(family.other)))
				cluster.Release(ctx, family.own)
			}
			cluster.AwaitCollector(ctx, families[0].owner, families[1].owner)
			for _, family := range families {
				Expect(cluster.TryGet(ctx, family.own)).To(BeGone())
				Expect(cluster.Get(ctx, family.owner)).To(waiting, "the dependent of the other kind still exists")
				cluster.Release(ctx, family.other)
			}
			for _, family := range families {
				Eventually(ctx, cluster.History(family.own, family.owner)).Should(HaveObserved(Deleted(family.own), Deleted(family.owner)))
			}
		})

	Specify("Orphan deletion of a custom resource or a built-in object must keep dependents of both kinds and remove "+
		"their owner references.",
		Behavior("cascade.custom.orphan", Core, GC, CRD, SharedKind,
			Source(ownersAndDependents), Promise(orphanPolicy)), func(ctx SpecContext) {
			families := families(ctx)

			for _, family := range families {
				cluster.Delete(ctx, family.owner, Orphan)
			}

			for _, family := range families {
				Eventually(ctx, cluster.History(family.owner, family.own)).Should(
					HaveObserved(Terminating(family.owner), Matching(family.own, BeOwnedBy()), Deleted(family.owner)))
			}
			cluster.AwaitCollector(ctx, families[0].owner, families[1].owner)
			for _, family := range families {
				for _, orphan := range []*Object{family.own, family.other} {
					Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), BeOwnedBy(), Not(BeTerminating())))
				}
			}
		})

	Specify("The garbage collector must delete dependents of a kind that is defined after the garbage collector has started.",
		Behavior("cascade.custom.new-kind", Core, GC, CRD, Source(objectMeta), Promise(allOwnersGone)),
		func(ctx SpecContext) {
			cluster.AwaitCollector(ctx) // the collector is running
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))

			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(cluster.Group(), "any"))
		})

	Specify("Deleting a CustomResourceDefinition must delete the dependents of its custom resources.",
		Behavior("cascade.custom.crd-instances-cascade", Core, GC, CRD, SharedKind, Source(objectMeta), Promise(allOwnersGone)),
		func(ctx SpecContext) {
			spare := definitions.Spare(ctx, cluster)
			instance := cluster.Create(ctx, spare("instance"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(instance))
			cluster.AwaitCollector(ctx, instance, dependent) // the collector has one watch for each kind

			cluster.Delete(ctx, fixtures.CustomResourceDefinition(instance.GroupVersionKind().Group))

			Eventually(ctx, cluster.History(dependent)).Should(HaveObserved(Deleted(dependent)))
			Expect(cluster.TryGet(ctx, instance)).To(BeGone())
		})

	Specify("A CustomResourceDefinition that is deleted and created again must serve its kind without the old objects, "+
		"and new dependents must be garbage-collected.",
		Behavior("cascade.custom.crd-recreated", Core, GC, CRD, Slow,
			Source(customResources), Promise("If you later recreate the same CustomResourceDefinition, it will start out empty.")),
		func(ctx SpecContext) {
			group := cluster.Group()
			manifest := fixtures.CustomResourceDefinition(group)
			definition := definitions.Create(ctx, cluster, manifest)
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(group, "any"))
			before := cluster.Create(ctx, fixtures.CustomResource(group, "before"))
			cluster.Unwatch(ctx, before) // the watch ends with the definition

			cluster.Delete(ctx, definition)
			definitions.AwaitRemoval(ctx, cluster, definition)
			// When the collector has discovered a kind that was defined later, it knows that this one is gone.
			later := "later." + group
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(later))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(later, "any"))
			definitions.Create(ctx, cluster, manifest)

			Expect(cluster.TryGet(ctx, before)).To(BeGone(), "custom resources of the old definition are gone")
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(group, "any"))
		})
})

// An unavailable conversion affects every client that lists all kinds, so these specs run alone.
var _ = Describe("Garbage collection and broken conversion", Serial, func() {
	cluster := UseCluster()

	Specify("A custom kind whose objects cannot be converted does not prevent the garbage collector from handling "+
		"other kinds, including new ones.",
		Behavior("cascade.custom.broken-conversion", Observed, GC, CRD, Disruptive, Slow, Since("1.32"), Source("kubernetes#101078")),
		func(ctx SpecContext) {
			broken, sound := "broken."+cluster.Group(), cluster.Group()
			// The conversion is broken from the beginning, so that the collector never has a list of the kind.
			definition := fixtures.CustomResourceDefinition(broken, "v2")
			definitions.UnreachableConversion(definition)
			definitions.Create(ctx, cluster, definition)
			cluster.Create(ctx, fixtures.CustomResource(broken, "unreadable"))
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))

			// When the collector has discovered a kind that was defined later, it has processed this one, too.
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(sound))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(sound, "any"))
			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, dependent)).Should(HaveObserved(Deleted(owner), Deleted(dependent)))
		})

	Specify("A garbage collector that starts while the objects of a custom kind cannot be converted still handles other kinds.",
		Behavior("cascade.custom.broken-conversion-at-start", Observed, GC, CRD, Disruptive, Slow, Since("1.32"), Source("kubernetes#127105")),
		func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group(), "v2"))
			thing := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "unreadable"))
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx, dependent) // fails early without a collector
			cluster.Unwatch(ctx, thing)                // a change of the definition ends the watches of its kind
			start := components.Stop(ctx, cluster, components.ControllerManager)
			cluster.Update(ctx, definition, definitions.UnreachableConversion)

			start(ctx)
			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, dependent)).WithTimeout(cluster.Session().AtLeast(collectorStarts)).Should(
				HaveObserved(Deleted(owner), Deleted(dependent)))
		})
})

var _ = Describe("Garbage collection and versions of custom resources", func() {
	cluster := UseCluster()

	Specify("A dependent remains whose owner is deleted after the version in the owner reference is no longer served.",
		Behavior("cascade.custom.owner-version-removed", Observed, GC, CRD, Slow, Source("kubernetes#102641")), func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group(), "v2"))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(cluster.Group(), "any"))
			owner := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx, owner, dependent) // a collector that does not know the owner would look for it in the old version
			cluster.Unwatch(ctx, owner)                       // the watch ends with the version
			cluster.Update(ctx, definition, func(definition *Object) {
				definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
			})
			definitions.AwaitVerbs(ctx, cluster, owner, BeEmpty())
			// When the collector has discovered a kind that was defined later, it knows that the version is gone.
			later := "later." + cluster.Group()
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(later))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(later, "any"))

			cluster.Delete(ctx, through(owner, "v2"), Background)

			cluster.AwaitCollector(ctx)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
		})

	Specify("The dependents of a custom resource remain if it is deleted and created again while the garbage collector cannot watch its kind.",
		Behavior("cascade.custom.recreated-unwatched", Observed, GC, CRD, Admin, Disruptive, Slow, Since("1.29"),
			Source("pkg/controller/garbagecollector/graph_builder.go")), func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(cluster.Group(), "any"))
			owner := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx, owner, dependent)
			cluster.Unwatch(ctx, owner)
			rejection := interruptCollector(ctx, cluster, definition, owner)

			cluster.Delete(ctx, owner, Background)
			again := createAgain(ctx, cluster, owner)
			cluster.Delete(ctx, rejection)

			cluster.AwaitCollector(ctx, again, dependent)
			Expect(cluster.Get(ctx, dependent)).To(BeUnchangedSince(dependent))
		})
})

// controllerManager is the user of kube-controller-manager, by whose watches the garbage collector sees objects.
const controllerManager = "system:kube-controller-manager"

// interruptCollector ends all watches of a custom kind, and makes the API server reject those of kube-controller-manager until the returned FlowSchema
// is deleted.
func interruptCollector(ctx SpecContext, cluster *Cluster, definition, like *Object) *Object {
	GinkgoHelper()
	collection := cluster.CollectionOf(ctx, like)
	watching, response := cluster.Session().Client.Watch(ctx, collection, metav1.ListOptions{ResourceVersion: like.GetResourceVersion()})
	Require(cluster.Check(ctx, response))
	defer watching.Stop()
	level := cluster.Create(ctx, fixtures.PriorityLevelConfiguration("rejecting"))
	schema := cluster.Create(ctx, fixtures.FlowSchema("rejecting"), WithField(level.GetName(), "spec", "priorityLevelConfiguration", "name"),
		WithField([]any{map[string]any{
			"subjects": []any{map[string]any{"kind": "User", "user": map[string]any{"name": controllerManager}}},
			"resourceRules": []any{map[string]any{
				"verbs": []any{"list", "watch"}, "apiGroups": []any{collection.Resource.Group}, "resources": []any{collection.Resource.Resource},
				"namespaces": []any{"*"},
			}},
		}}, "spec", "rules"))
	Eventually(ctx, cluster.History(schema)).Should(HaveObserved(Matching(schema, HaveConditionFalse("Dangling"))), "the FlowSchema applies")
	cluster.Update(ctx, definition, WithField([]any{"another"}, "spec", "names", "shortNames"))
	Eventually(ctx, watching.ResultChan()).Should(BeClosed(), "the watches of the kind end")
	return schema
}
