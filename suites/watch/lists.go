package watch

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/protocols"
)

// mostRecent is the documentation's promise for a list or get without a resourceVersion.
const mostRecent = "Return data at the most recent resource version. The returned data must be consistent"

var _ = Describe("Lists", func() {
	cluster := UseCluster()

	// label is the label that a list selects.
	const label = Domain + "/listed"

	// rounds are enough for a server that often returns stale lists. On a server that responds fast there are up to mostRounds in roundsFor.
	const rounds, mostRounds, roundsFor = 12, 60, 5 * time.Second

	// ofSpec selects the objects of the spec.
	ofSpec := func() string { return labels.Set(cluster.Labels()).String() }

	Specify("A get or list, with or without selectors, must not return an object whose delete has been answered.",
		Behavior("watch.list-after-delete", Core, AnyResource, Source(apiConcepts), Promise(mostRecent)), func(ctx SpecContext) {
			began := time.Now()
			for round := 0; round < rounds || round < mostRounds && time.Since(began) < roundsFor; round++ {
				object := cluster.Create(ctx, fixtures.ConfigMap("listed"), WithLabel(label, "yes"))
				lists := []metav1.ListOptions{{LabelSelector: label + "=yes"}, {FieldSelector: "metadata.name=" + object.GetName()}}
				if !cluster.Session().Shared { // others may have many objects in a shared namespace
					lists = append(lists, metav1.ListOptions{})
				}
				cluster.Delete(ctx, object)

				// One each round, in turns, because a stale response soon is no longer stale.
				turn := round % (len(lists) + 1)
				if turn == len(lists) {
					Expect(cluster.TryGet(ctx, object)).To(BeGone())
					continue
				}
				objects, _ := pageOf(ctx, cluster, object, lists[turn])
				Expect(objects).NotTo(ContainElement(BeSameObjectAs(object)), "labelSelector %q, fieldSelector %q", lists[turn].LabelSelector, lists[turn].FieldSelector)
			}
		})

	// terminating creates and deletes an object that is held, and waits until watches show that.
	terminating := func(ctx SpecContext) *Object {
		GinkgoHelper()
		object := cluster.Create(ctx, fixtures.ConfigMap("terminating"), Held)
		cluster.Delete(ctx, object)
		Eventually(ctx, cluster.History(object)).Should(HaveObserved(Terminating(object)))
		return object
	}

	Specify("A list, with or without a minimum resourceVersion, and the initial events of a watch must contain "+
		"terminating objects with their deletionTimestamp.",
		Behavior("watch.terminating-is-listed", Core, AnyResource, Source(apiConcepts), Promise(mostRecent)), func(ctx SpecContext) {
			object := terminating(ctx)
			asTerminating := cluster.Get(ctx, object).GetResourceVersion()

			// A list or a watch at resourceVersion 0 may be stale.
			for _, options := range []metav1.ListOptions{
				{LabelSelector: ofSpec()}, {LabelSelector: ofSpec(), ResourceVersion: asTerminating, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			} {
				objects, _ := pageOf(ctx, cluster, object, options)
				Expect(objects).To(ConsistOf(And(BeSameObjectAs(object), BeTerminating())))
			}
			watching := cluster.WatchFrom(ctx, object, metav1.ListOptions{})
			cluster.Release(ctx, object) // later events follow the first ones

			Eventually(ctx, watching).Should(HaveObservedOnly(Terminating(object), Deleted(object)))
		})

	Specify("A streaming list (sendInitialEvents) must contain terminating objects with their deletionTimestamp.",
		Behavior("watch.terminating-is-streamed", Extended, AnyResource, Since("1.34"), Source(apiConcepts),
			Promise("the API server starts the watch stream with synthetic init events ... to build the whole state of all existing objects")),
		func(ctx SpecContext) {
			object := terminating(ctx)

			streamed := cluster.WatchFrom(ctx, object, metav1.ListOptions{
				SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
			})
			cluster.Release(ctx, object)

			Eventually(ctx, streamed).Should(HaveObservedOnly(Terminating(object), Deleted(object)))
		})

	Specify("A streaming list must end its initial events with a bookmark that has the annotation k8s.io/initial-events-end, and a watch from "+
		"the resourceVersion of the bookmark must deliver later deletions.",
		Behavior("watch.initial-events-end", Extended, AnyResource, Since("1.34"), Source(apiConcepts),
			Promise("followed by a `BOOKMARK` event ... The bookmark event includes the resource version to which is synced. After sending "+
				"the bookmark event, the API server continues")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("streamed"))
			streamed, response := cluster.Session().Client.Watch(ctx, cluster.CollectionOf(ctx, object), metav1.ListOptions{
				LabelSelector: ofSpec(), SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
			})
			if apierrors.IsInvalid(response.Err) {
				Skip("the server does not support streaming lists: " + response.Message())
			}
			Require(cluster.Check(ctx, response))
			DeferCleanup(streamed.Stop)

			var event watch.Event
			Eventually(ctx, streamed.ResultChan()).Should(Receive(&event, HaveField("Type", watch.Bookmark)), "a bookmark ends the initial events")
			end := event.Object.(*Object)
			Expect(end.GetAnnotations()).To(HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
			later := cluster.WatchFrom(ctx, object, metav1.ListOptions{ResourceVersion: end.GetResourceVersion()})
			cluster.Delete(ctx, object)

			Eventually(ctx, later).Should(HaveObservedOnly(Deleted(object)))
		})

	Specify("A list with the resourceVersionMatch Exact and a version before a deletion must contain the deleted object, and a list "+
		"NotOlderThan the deletion must not.",
		Behavior("watch.list-at-exact-version", Core, AnyResource, Source(apiConcepts),
			Promise("Return data at the exact resource version provided.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("past"))
			cluster.Delete(ctx, object)
			deleted := AwaitDeleted(ctx, cluster, object)

			before, _ := pageOf(ctx, cluster, object, metav1.ListOptions{
				LabelSelector: ofSpec(), ResourceVersion: object.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			Expect(before).To(ConsistOf(HaveStateOf(object)))
			after, _ := pageOf(ctx, cluster, object, metav1.ListOptions{
				LabelSelector: ofSpec(), ResourceVersion: deleted.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			Expect(after).To(BeEmpty())
		})

	Specify("A list and a watch of PartialObjectMetadata must show the deletionTimestamp of a terminating object, and the watch must "+
		"deliver its DELETED event.",
		Behavior("watch.partial-metadata", Core, AnyResource, Source(apiConcepts),
			Promise("You can also request table and metadata-only representations of this encoding.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("partial"), Held)
			watching := protocols.Accepting(cluster, MetadataJSON).WatchFrom(ctx, object, from(object))

			cluster.Delete(ctx, object)
			Expect(protocols.Accepting(cluster, MetadataListJSON).List(ctx, object)).To(ConsistOf(And(
				HaveField("GetKind()", "PartialObjectMetadata"), HaveField("GetUID()", object.GetUID()), BeTerminating())))
			cluster.Release(ctx, object)

			Eventually(ctx, watching).Should(HaveObserved(
				Matching(object, And(HaveField("GetKind()", "PartialObjectMetadata"), BeTerminating())), Deleted(object)))
		})

	Specify("An object that is deleted between two pages of a list must still be on the second page.",
		Behavior("watch.pages-are-consistent", Core, AnyResource, Source(apiConcepts),
			Promise("the `resourceVersion` of the collection remains constant across each request, indicating the server is showing you a "+
				"consistent snapshot of the pods.")), func(ctx SpecContext) {
			first := cluster.Create(ctx, fixtures.ConfigMap("page-1"))
			second := cluster.Create(ctx, fixtures.ConfigMap("page-2"))

			page, next := pageOf(ctx, cluster, first, metav1.ListOptions{LabelSelector: ofSpec(), Limit: 1})
			Expect(page).To(ConsistOf(BeUnchangedSince(first)))
			cluster.Delete(ctx, second)

			page, _ = pageOf(ctx, cluster, first, metav1.ListOptions{LabelSelector: ofSpec(), Limit: 1, Continue: next})
			Expect(page).To(ConsistOf(BeUnchangedSince(second)))
		})
})

// pageOf lists objects of a kind in the object's namespace. With a limit in the options, next is the continue token of the next
// list.
func pageOf(ctx SpecContext, cluster *Cluster, like *Object, options metav1.ListOptions) (objects []*Object, next string) {
	GinkgoHelper()
	query, err := scheme.ParameterCodec.EncodeParameters(&options, schema.GroupVersion{Version: "v1"})
	Expect(err).NotTo(HaveOccurred())
	objects, next, response := cluster.Session().Client.Page(ctx, cluster.CollectionOf(ctx, like), query)
	Require(cluster.Check(ctx, response))
	return objects, next
}
