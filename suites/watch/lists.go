package watch

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// mostRecent is what the documentation promises of a list or get without a resourceVersion.
const mostRecent = "Return data at the most recent resource version. The returned data must be consistent"

var _ = Describe("Lists", func() {
	cluster := UseCluster()

	// label is on what a list by label looks for.
	const label = Domain + "/listed"

	Specify("A get or list, with or without selectors, must not return an object whose delete has been answered.",
		Behavior("watch.list-after-delete", Core, AnyResource, Source(apiConcepts), Promise(mostRecent)), func(ctx SpecContext) {
			for round := range 60 {
				object := cluster.Create(ctx, fixtures.ConfigMap("listed"), WithLabel(label, "yes"))
				lists := []metav1.ListOptions{{}, {LabelSelector: label + "=yes"}, {FieldSelector: "metadata.name=" + object.GetName()}}
				cluster.Delete(ctx, object)

				// One a round, by turns: a stale answer is soon no longer stale.
				turn := round % (len(lists) + 1)
				if turn == len(lists) {
					Expect(cluster.TryGet(ctx, object)).To(BeGone())
					continue
				}
				objects, _ := pageOf(ctx, cluster, object, lists[turn])
				Expect(objects).To(BeEmpty(), "labelSelector %q, fieldSelector %q", lists[turn].LabelSelector, lists[turn].FieldSelector)
			}
		})

	// terminating makes an object that is held in the middle of its deletion, and waits until watches know.
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
				{}, {ResourceVersion: asTerminating, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			} {
				objects, _ := pageOf(ctx, cluster, object, options)
				Expect(objects).To(ConsistOf(And(BeSameObjectAs(object), BeTerminating())))
			}
			watching := cluster.WatchFrom(ctx, object, metav1.ListOptions{})
			cluster.Release(ctx, object) // what happens later comes after the first events

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

	Specify("An object that is deleted between two pages of a list must still be on the second page.",
		Behavior("watch.pages-are-consistent", Core, AnyResource, Source(apiConcepts),
			Promise("the `resourceVersion` of the collection remains constant across each request, indicating the server is showing you a "+
				"consistent snapshot of the pods.")), func(ctx SpecContext) {
			first := cluster.Create(ctx, fixtures.ConfigMap("page-1"))
			second := cluster.Create(ctx, fixtures.ConfigMap("page-2"))

			page, next := pageOf(ctx, cluster, first, metav1.ListOptions{Limit: 1})
			Expect(page).To(ConsistOf(BeUnchangedSince(first)))
			cluster.Delete(ctx, second)

			page, _ = pageOf(ctx, cluster, first, metav1.ListOptions{Limit: 1, Continue: next})
			Expect(page).To(ConsistOf(BeUnchangedSince(second)))
		})
})

// pageOf lists what the spec made of an object's kind, in the object's namespace. Where the options limit the number of objects, next
// is what the list after it continues with.
func pageOf(ctx SpecContext, cluster *Cluster, like *Object, options metav1.ListOptions) (objects []*Object, next string) {
	GinkgoHelper()
	options.LabelSelector = labels.Set(cluster.Labels()).String()
	query, err := scheme.ParameterCodec.EncodeParameters(&options, schema.GroupVersion{Version: "v1"})
	Expect(err).NotTo(HaveOccurred())
	objects, next, response := cluster.Session().Client.Page(ctx, cluster.CollectionOf(ctx, like), query)
	Require(cluster.Check(ctx, response))
	return objects, next
}
