package cascade

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

var _ = Describe("Deletecollection", func() {
	cluster := UseCluster()

	// group is the label in the selectors of deletecollections.
	const group = Domain + "/group"

	// named creates ConfigMaps.
	named := func(ctx SpecContext, names []string, options ...ObjectOption) []*Object {
		GinkgoHelper()
		var members []*Object
		for _, name := range names {
			members = append(members, cluster.Create(ctx, fixtures.ConfigMap(name), options...))
		}
		return members
	}

	Specify("A deletecollection must apply its propagation policy to each object.",
		Behavior("cascade.collection.policy", Core, AnyResource, GC,
			Source(configMapReference), Promise(howCollected)), func(ctx SpecContext) {
			family := func(policy string, options ...ObjectOption) (owners, children []*Object) {
				owners = named(ctx, []string{policy + "-one", policy + "-two"}, WithLabel(group, policy))
				for i, owner := range owners {
					child := fixtures.ConfigMap(fmt.Sprintf("child-of-%s-%d", policy, i))
					children = append(children, cluster.Create(ctx, child, append(options, OwnedBy(owner, Blocking))...))
				}
				return owners, children
			}
			orphaning, orphans := family("orphan")
			background, collected := family("background")
			foreground, blocking := family("foreground", Held)

			cluster.DeleteCollection(ctx, orphaning[0], Orphan, WithLabelSelector(group+"=orphan"))
			cluster.DeleteCollection(ctx, background[0], Background, WithLabelSelector(group+"=background"))
			cluster.DeleteCollection(ctx, foreground[0], Foreground, WithLabelSelector(group+"=foreground"))

			Eventually(ctx, cluster.History(orphaning...)).Should(HaveObserved(Each(Deleted, orphaning...)))
			for i, owner := range background { // the collector does not wait for the end of the collection
				Eventually(ctx, cluster.History(owner, collected[i])).Should(HaveObserved(Deleted(owner), Deleted(collected[i])))
			}
			Eventually(ctx, cluster.History(blocking...)).Should(HaveObserved(Each(Terminating, blocking...)))
			cluster.AwaitCollector(ctx)
			for _, orphan := range orphans {
				Expect(cluster.Get(ctx, orphan)).To(And(BeOwnedBy(), Not(BeTerminating())))
			}
			for _, owner := range foreground {
				Expect(cluster.Get(ctx, owner)).To(And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents)))
			}
		})

	Specify("A deletecollection must delete exactly the objects that match its label and field selectors.",
		Behavior("cascade.collection.selector", Core, AnyResource,
			Source(configMapReference),
			Promise("A selector to restrict the list of returned objects by their fields. ... A selector to restrict the list of "+
				"returned objects by their labels.")), func(ctx SpecContext) {
			ours := named(ctx, []string{"one", "two"}, WithLabel(group, "ours"))
			others := named(ctx, []string{"three"}, WithLabel(group, "others"))

			cluster.DeleteCollection(ctx, ours[0], WithLabelSelector(group+"=ours"), WithFieldSelector("metadata.name="+ours[0].GetName()))
			Expect(cluster.List(ctx, ours[0])).To(ConsistOf(BeUnchangedSince(ours[1]), BeUnchangedSince(others[0])))

			cluster.DeleteCollection(ctx, ours[0], WithLabelSelector(group+" in (ours, missing)"))
			Expect(cluster.List(ctx, ours[0])).To(ConsistOf(BeUnchangedSince(others[0])))

			cluster.DeleteCollection(ctx, ours[0], WithFieldSelector("metadata.name!="+others[0].GetName()))
			Expect(cluster.Get(ctx, others[0])).To(BeUnchangedSince(others[0]))
		})

	Specify("A deletecollection with an invalid selector must be refused as invalid and delete nothing.",
		Behavior("cascade.collection.bad-selector", Core, AnyResource,
			Source("concepts/overview/working-with-objects/field-selectors"),
			Promise("Using unsupported field selectors produces an error.")), func(ctx SpecContext) {
			mustOwnCollection(ctx, cluster, fixtures.ConfigMap("member"), "delete all with a selector that the server must refuse")
			members := named(ctx, []string{"one", "two"})

			for _, selector := range []DeleteOption{
				WithLabelSelector("a in (b"), WithLabelSelector("no label"),
				WithFieldSelector("metadata.name"), WithFieldSelector("spec.unknown=yes"),
			} {
				Expect(cluster.TryDeleteCollection(ctx, members[0], selector)).To(beInvalid())
			}

			Expect(cluster.List(ctx, members[0])).To(ConsistOf(BeUnchangedSince(members[0]), BeUnchangedSince(members[1])))
		})

	Specify("A deletecollection in one namespace must not delete objects in another namespace.",
		Behavior("cascade.collection.one-namespace", Core, Namespace,
			Source(apiConcepts), Promise("return collection of all instances of the resource type in NAMESPACE")), func(ctx SpecContext) {
			here := cluster.Create(ctx, fixtures.ConfigMap("here"))
			elsewhere := cluster.In(cluster.Create(ctx, fixtures.Namespace("elsewhere")))
			there := elsewhere.Create(ctx, fixtures.ConfigMap("there"))

			cluster.DeleteCollection(ctx, here)
			Expect(cluster.TryGet(ctx, here)).To(BeGone())
			Expect(cluster.Get(ctx, there)).To(BeUnchangedSince(there))
		})

	Specify("A deletecollection of a namespaced resource across all namespaces is refused with 405.",
		Behavior("cascade.collection.not-across-namespaces", Observed, Source("k8s.io/apiserver/pkg/endpoints/installer.go")), func(ctx SpecContext) {
			everywhere := cluster.Create(ctx, fixtures.ConfigMap("here")).DeepCopy()
			everywhere.SetNamespace("")

			// A dry-run, so that a faulty server deletes nothing.
			Expect(cluster.TryDeleteCollection(ctx, everywhere, DryRunTwice)).To(HaveStatusCode(http.StatusMethodNotAllowed))
		})

	Specify("A dry-run deletecollection must change nothing.",
		Behavior("cascade.collection.dry-run", Core, AnyResource, Source(apiConcepts), Promise(withoutEffect)), func(ctx SpecContext) {
			free := cluster.Create(ctx, fixtures.ConfigMap("free"))
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)

			for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
				cluster.DeleteCollection(ctx, free, DryRun, policy)
				Expect(cluster.List(ctx, free)).To(ConsistOf(BeUnchangedSince(free), BeUnchangedSince(held)))
			}
		})

	Specify("A deletecollection of pods must give each pod the requested grace period, or by default the grace period of the pod.",
		Behavior("cascade.collection.grace", Core,
			Source(deleteOptions),
			Promise("The duration in seconds before the object should be deleted. ... Defaults to a per object value if not "+
				"specified.")), func(ctx SpecContext) {
			pods := func(name string) (unscheduled, short, long *Object) {
				// Lists are sorted by name, so the pod that may be deleted immediately comes first.
				return cluster.Create(ctx, fixtures.UnscheduledPod(name+"-1"), WithLabel(group, name)),
					cluster.Create(ctx, fixtures.GhostBoundPod(name+"-2"), WithLabel(group, name), WithGrace(50)),
					cluster.Create(ctx, fixtures.GhostBoundPod(name+"-3"), WithLabel(group, name), WithGrace(70))
			}
			now, short, long := pods("silent")
			askedNow, askedShort, askedLong := pods("asked")

			cluster.DeleteCollection(ctx, now, WithLabelSelector(group+"=silent"))
			cluster.DeleteCollection(ctx, now, WithLabelSelector(group+"=asked"), Grace(60))

			Expect(cluster.List(ctx, now)).To(ContainElements(
				And(BeSameObjectAs(short), BeTerminating(), HaveGracePeriod(50)),
				And(BeSameObjectAs(long), BeTerminating(), HaveGracePeriod(70)),
				And(BeSameObjectAs(askedShort), BeTerminating(), HaveGracePeriod(60)),
				And(BeSameObjectAs(askedLong), BeTerminating(), HaveGracePeriod(60)),
			))
			for _, pod := range []*Object{now, askedNow} {
				Expect(cluster.TryGet(ctx, pod)).To(Or(BeGone(), BeTerminating()))
			}
		})

	Specify("A deletecollection with another uid as a precondition must be refused with 409 and delete nothing.",
		Behavior("cascade.collection.preconditions", Core, AnyResource,
			Source(deleteOptions),
			Promise("Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status will be returned.")), func(ctx SpecContext) {
			members := named(ctx, []string{"one", "two"})

			Expect(cluster.TryDeleteCollection(ctx, members[0], IfUID("somebody-else"))).To(HaveStatusCode(http.StatusConflict))

			Expect(cluster.List(ctx, members[0])).To(ConsistOf(BeUnchangedSince(members[0]), BeUnchangedSince(members[1])))
		})

	Specify("A deletecollection returns an error when admission refuses an object, and does not delete objects that were refused or not "+
		"reviewed.",
		Behavior("cascade.collection.partial-failure", Observed, AnyResource, Hook,
			Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			// Lists are sorted by name, so the refused member comes first, and the others are left.
			members := named(ctx, []string{"1", "2", "3"}, WithLabel(group, "ours"))
			refused := members[0]
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Deny(refused, "this one stays")

			response := cluster.TryDeleteCollection(ctx, refused, WithLabelSelector(group+"=ours"))

			Expect(response).To(HaveStatusCode(http.StatusForbidden))
			Expect(response.Message()).To(ContainSubstring("this one stays"))
			Expect(cluster.Get(ctx, refused)).To(BeUnchangedSince(refused))
			for _, member := range members {
				if len(webhook.Reviews(member)) == 0 {
					Expect(cluster.Get(ctx, member)).To(BeUnchangedSince(member))
				}
			}
		})

	Specify("A deletecollection must set the deletionTimestamp of objects with finalizers and keep the objects.",
		Behavior("cascade.collection.held", Core, AnyResource, Source(finalizersPage), Promise(untilRemoved)), func(ctx SpecContext) {
			held := named(ctx, []string{"one", "two"}, Held)

			cluster.DeleteCollection(ctx, held[0])

			Expect(cluster.List(ctx, held[0])).To(ConsistOf(
				And(BeSameObjectAs(held[0]), BeTerminating(), HaveFinalizers(Hold)),
				And(BeSameObjectAs(held[1]), BeTerminating(), HaveFinalizers(Hold)),
			))
		})

	Specify("A deletecollection returns 200 with a list of the deleted objects.",
		Behavior("cascade.collection.response", Observed, AnyResource, Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			members := named(ctx, []string{"one", "two"}, WithLabel(group, "ours"))
			named(ctx, []string{"three"})

			response := cluster.DeleteCollection(ctx, members[0], WithLabelSelector(group+"=ours"))

			Expect(response).To(HaveStatusCode(http.StatusOK))
			Expect(response.Object.IsList()).To(BeTrue(), "the response is a list")
			list, err := response.Object.ToList()
			Expect(err).NotTo(HaveOccurred())
			var uids []string
			for _, item := range list.Items {
				uids = append(uids, string(item.GetUID()))
			}
			Expect(uids).To(ConsistOf(string(members[0].GetUID()), string(members[1].GetUID())))
		})

	Specify("A deletecollection with a limit deletes no more objects than the limit.",
		Behavior("cascade.collection.limit", Observed, AnyResource, Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			members := named(ctx, []string{"one", "two", "three"})

			cluster.DeleteCollection(ctx, members[0], Limit(2))

			Expect(cluster.List(ctx, members[0])).To(HaveLen(1))
		})
})

// mustOwnCollection skips the spec when the collection of an object may contain objects of others.
func mustOwnCollection(ctx SpecContext, cluster *Cluster, like *Object, what string) {
	GinkgoHelper()
	MustOwnNamespace(cluster, what)
	if collection := cluster.CollectionOf(ctx, cluster.Prepare(ctx, like)); collection.Namespace == "" {
		Skip(fmt.Sprintf("it would %s, and others may have %s, which are cluster-scoped", what, collection.Resource.GroupResource()))
	}
}
