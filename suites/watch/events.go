package watch

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

const (
	// apiConcepts is the page of the documentation on watches, lists and resource versions.
	apiConcepts = "reference/using-api/api-concepts"
	// nothingMissed and allChangesAfter are sentences of that page about every watch, and about one with a resourceVersion.
	nothingMissed = "The overall **watch** mechanism allows a client to fetch the current state and then subscribe to subsequent " +
		"changes, without missing any events."
	allChangesAfter = "The watch events are for all changes after the provided resource version."
)

// from returns the options of a watch that starts after a state of an object.
func from(object *Object) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: object.GetResourceVersion()}
}

var _ = Describe("Watches", func() {
	cluster := UseCluster()

	Specify("The object in a DELETED event must have a higher resourceVersion than every earlier state of the object.",
		Behavior("watch.deleted-event-version", Core, Since("1.35"), Source(apiConcepts),
			Promise("Resource version strings are orderable as monotonically increasing integers within the same resource type "+
				"for all types served by kube-apiserver.")), func(ctx SpecContext) {
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)
			objects := []*Object{held}
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.GhostBoundPod) {
				objects = append(objects, cluster.Create(ctx, kind("free")))
			}

			for _, object := range objects {
				cluster.Delete(ctx, object, Grace(0))
			}
			cluster.Release(ctx, held)

			for _, object := range objects {
				version := AwaitDeleted(ctx, cluster, object).GetResourceVersion()
				events, err := cluster.History(object).Events()
				Expect(err).NotTo(HaveOccurred())
				for _, earlier := range events[:len(events)-1] {
					Expect(resourceversion.CompareResourceVersion(earlier.Object.GetResourceVersion(), version)).To(Equal(-1),
						"%s at resourceVersion %s and DELETED at %s", earlier.Type, earlier.Object.GetResourceVersion(), version)
				}
			}
		})

	Specify("The object in a DELETED event has the resourceVersion of the object in the response to the delete.",
		Behavior("watch.delete-response-version", Observed, Source("kubernetes#58545")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"))

			response := Require(cluster.TryDelete(ctx, pod))

			Expect(response).To(BeSameObjectAs(pod))
			Expect(AwaitDeleted(ctx, cluster, pod).GetResourceVersion()).To(Equal(response.Object.GetResourceVersion()))
		})

	Specify("Deleting and recreating an object under one name must cause exactly a DELETED event with the old uid and "+
		"an ADDED event with the new uid.",
		Behavior("watch.recreation", Core, AnyResource, Source(apiConcepts), Promise(nothingMissed)), func(ctx SpecContext) {
			old := cluster.Create(ctx, fixtures.ConfigMap("phoenix"))
			live := cluster.WatchFrom(ctx, old, from(old))
			cluster.Delete(ctx, old)
			again := cluster.Create(ctx, fixtures.ConfigMap("phoenix"))
			late := cluster.WatchFrom(ctx, old, from(old))

			for _, watching := range []*History{live, late} {
				Eventually(ctx, watching).Should(HaveObservedOnly(Deleted(old), Added(again)))
			}
		})

	Specify("A watch resumed from before a deletion must deliver DELETED once, and a watch resumed from the DELETED "+
		"event must not repeat it.",
		Behavior("watch.resumed-sees-deletion", Core, AnyResource, Source(apiConcepts), Promise(allChangesAfter)), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("deleted"))
			cluster.Delete(ctx, object)
			next := cluster.Create(ctx, fixtures.ConfigMap("next"))

			before := cluster.WatchFrom(ctx, object, from(object))
			after := cluster.WatchFrom(ctx, object, from(AwaitDeleted(ctx, cluster, object)))

			Eventually(ctx, before).Should(HaveObservedOnly(Deleted(object), Added(next)))
			Eventually(ctx, after).Should(HaveObservedOnly(Added(next)))
		})

	Specify("Concurrent deletes of one object must each be accepted or refused with 404 or 409, and must cause exactly one DELETED event.",
		Behavior("watch.concurrent-deletes", Core, Source(apiConcepts), Promise(allChangesAfter)), func(ctx SpecContext) {
			// With this grace period a delete removes a pod at once, in two steps.
			immediate := func(name string) *Object {
				pod := fixtures.GhostBoundPod(name)
				WithGrace(0)(pod)
				return pod
			}
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, immediate) {
				object := cluster.Create(ctx, kind("contested"))
				watching := cluster.WatchFrom(ctx, object, from(object))

				responses := TryDeleteAtOnce(ctx, cluster, object, 20)
				next := cluster.Create(ctx, kind("next"))

				Expect(responses).To(ContainElement(BeAccepted()))
				Expect(responses).To(HaveEach(Or(
					BeAccepted(), HaveStatusCode(http.StatusNotFound), HaveStatusCode(http.StatusConflict))))
				Eventually(ctx, watching).Should(HaveObserved(Deleted(object), Added(next)))
				Expect(deletions(watching)).To(HaveExactElements(BeSameObjectAs(object)))
			}
		})

	Specify("A watch with a label selector must deliver DELETED for an object that stops matching, and the object must still exist.",
		Behavior("watch.leaving-selector", Core, AnyResource, Source("conformance: watch-configmaps-label-changed"),
			Promise("Ensure that a watched object stops meeting the requirements of a watch's selector, the watch will observe a delete")),
		func(ctx SpecContext) {
			const stage = Domain + "/stage"
			object := cluster.Create(ctx, fixtures.ConfigMap("leaving"), WithLabel(stage, "in"))
			inside := from(object)
			inside.LabelSelector = stage + "=in"
			watching := cluster.WatchFrom(ctx, object, inside)

			cluster.Update(ctx, object, WithLabel(stage, "out"))

			Eventually(ctx, watching).Should(HaveObservedOnly(Deleted(object)))
			Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), Not(BeTerminating())))
		})

	Specify("A watch by metadata.name must deliver the DELETED event of the named object and no events of other objects.",
		Behavior("watch.by-name", Core, AnyResource, Source("concepts/overview/working-with-objects/field-selectors"),
			Promise("Field selectors let you select Kubernetes objects based on the value of one or more resource fields.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("watched"))
			other := cluster.Create(ctx, fixtures.ConfigMap("other"))
			byName := from(object)
			byName.FieldSelector = "metadata.name=" + object.GetName()
			watching := cluster.WatchFrom(ctx, object, byName)

			cluster.Delete(ctx, other)
			cluster.Delete(ctx, object)
			again := cluster.Create(ctx, fixtures.ConfigMap("watched")) // which shows that a deletion was left out

			Eventually(ctx, watching).Should(HaveObservedOnly(Deleted(object), Added(again)))
		})

	Specify("Concurrent watches, and a watch resumed later, must deliver deletions in the same order.",
		Behavior("watch.same-order", Core, AnyResource, Source("conformance: watch-consistency"),
			Promise("Ensure that concurrent watches are consistent with each other")), func(ctx SpecContext) {
			objects := make([]*Object, 8)
			for i := range objects {
				objects[i] = cluster.Create(ctx, fixtures.ConfigMap("deleted-"+string(rune('a'+i))))
			}
			start := from(objects[len(objects)-1])
			one, two := cluster.WatchFrom(ctx, objects[0], start), cluster.WatchFrom(ctx, objects[0], start)

			InParallel(len(objects), func(i int) Response { return cluster.TryDelete(ctx, objects[i]) })
			late := cluster.WatchFrom(ctx, objects[0], start)

			Eventually(ctx, one).Should(HaveObserved(Each(Deleted, objects...)))
			var order []EventMatcher
			for _, object := range deletions(one) {
				order = append(order, Deleted(object))
			}
			for _, watching := range []*History{two, late} {
				Eventually(ctx, watching).Should(HaveObservedOnly(order...))
			}
		})
})

// deletions returns the objects of the DELETED events of a history.
func deletions(history *History) []*Object {
	GinkgoHelper()
	events, err := history.Events()
	Expect(err).NotTo(HaveOccurred())
	var deleted []*Object
	for _, event := range events {
		if event.Type == apiwatch.Deleted {
			deleted = append(deleted, event.Object)
		}
	}
	return deleted
}
