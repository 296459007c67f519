package environment

import (
	"context"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Events about the run's objects remain for an hour after the objects. In a namespace of the run they are deleted with it; in a shared
// namespace other users would see them. They carry no labels, so they are recognized by their names, which begin with the names of their
// objects and so contain the run's id.

const (
	// eventsAtOnce is the page size for Events.
	eventsAtOnce = "500"
	// quietTime is the time without a new Event after which no more are expected, because controllers report with a delay.
	quietTime = time.Second
)

// clearEvents removes the Events about the run's objects from the shared namespace until no more appear. Without the permission they expire
// like all others.
func (t *teardown) clearEvents(ctx context.Context) {
	t.clearEventsOnce(ctx)
	for quiet := false; !quiet && ctx.Err() == nil; {
		client.Wait(ctx, t.slowed(quietTime))
		quiet = !t.clearEventsOnce(ctx)
	}
}

// clearEventsOnce removes the existing Events about the run's objects, and reports whether there were any.
func (t *teardown) clearEventsOnce(ctx context.Context) (removed bool) {
	events := client.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "Event", Namespace: t.options.SharedNamespace,
	}
	for next, more := "", true; more; more = next != "" {
		var page []*client.Object
		var response client.Response
		page, next, response = t.with.Page(ctx, events, url.Values{"limit": {eventsAtOnce}, "continue": {next}})
		if response.Err != nil {
			return removed
		}
		own := slices.DeleteFunc(page, func(event *client.Object) bool { return !client.NamedBy(t.options.Run, event.GetName()) })
		if t.with.DeleteEach(ctx, events, own).Err != nil {
			return false
		}
		removed = removed || len(own) > 0
	}
	return removed
}
