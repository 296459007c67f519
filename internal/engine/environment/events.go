package environment

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Events about the run's objects remain for an hour after the objects. In a namespace of the run they are deleted with it. In a shared
// namespace, and in the namespace default, where those about cluster-scoped objects are, other users would see them. They carry no labels, so
// they are recognized by their names, which begin with the names of their objects and so contain the run's id. What an Event states about its
// object proves nothing: every user who may create Events can write it, and components do not agree on the uid of a Node.

const (
	// maxParallelEvents is the page size for Events.
	maxParallelEvents = "500"
	// quietTime is the time without a new Event after which no more are expected, because controllers report with a delay.
	quietTime = time.Second
)

// eventsOf lists the Events of a shared namespace or, without one, those about cluster-scoped objects, by pages.
func eventsOf(ctx context.Context, with *client.Client, shared string) (client.Collection, iter.Seq2[[]*client.Object, client.Response]) {
	events := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "Event", Namespace: shared}
	query := url.Values{"limit": {maxParallelEvents}}
	if shared == "" {
		events.Namespace = metav1.NamespaceDefault
		query.Set("fieldSelector", "involvedObject.namespace=")
	}
	return events, with.Pages(ctx, events, query)
}

// clearEvents removes the Events about the run's objects until no more appear. In a shared namespace it waits for those about the last
// deletions; elsewhere namespaces take longer to be deleted. Without the permission Events expire like all others.
func (t *teardown) clearEvents(ctx context.Context) {
	for recent := t.shared != ""; (t.clearEventsOnce(ctx) || recent) && ctx.Err() == nil; recent = false {
		client.Wait(ctx, t.settings.Slowed(quietTime))
	}
}

// clearEventsOnce removes the existing Events about the run's objects, and reports whether there were any.
func (t *teardown) clearEventsOnce(ctx context.Context) (removed bool) {
	events, pages := eventsOf(ctx, t.client, t.shared)
	for page, response := range pages {
		own := slices.DeleteFunc(page, func(event *client.Object) bool { return !client.NamedBy(t.run, event.GetName()) })
		removed = removed || len(own) > 0
		if response.Err != nil || t.client.DeleteEach(ctx, events, own).Err != nil {
			return false
		}
	}
	return removed
}
