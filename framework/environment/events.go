package environment

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Events about the run's objects outlive these by an hour. In a namespace of the run's own they go with it; in one that it shares,
// they would be found by whoever looks for Events there. They carry no label, so they are told by the names of the objects that they
// are about, which contain the run's id.

const (
	// eventsAtOnce is how many Events are looked at in one request.
	eventsAtOnce = "500"
	// quietTime is how long no new Event must come until no more are expected: controllers report with a delay.
	quietTime = time.Second
)

// clearEvents removes the Events about the run's objects from the namespace that it shared, until no more come. Where the credentials
// do not allow that, they expire like all others.
func (t *teardown) clearEvents(ctx context.Context) {
	t.clearEventsOnce(ctx)
	for quiet := false; !quiet && ctx.Err() == nil; {
		client.Wait(ctx, t.slowed(quietTime))
		quiet = !t.clearEventsOnce(ctx)
	}
}

// clearEventsOnce removes the Events about the run's objects that there are, and says whether it removed any.
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
		own := slices.DeleteFunc(page, func(event *client.Object) bool { return !t.isAboutOwn(event) })
		if t.with.DeleteEach(ctx, events, own).Err != nil {
			return false
		}
		removed = removed || len(own) > 0
	}
	return removed
}

// isAboutOwn says that an Event is about an object of the run.
func (t *teardown) isAboutOwn(event *client.Object) bool {
	name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
	return strings.Contains(name, t.options.Run)
}
