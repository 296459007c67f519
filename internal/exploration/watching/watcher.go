package watching

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Watcher watches the objects of all rounds, with one request after the other. Its streams are cut at the end of each round.
type Watcher struct {
	id string
	// label is what its label selector requires; empty for all objects.
	label string
	// initial begins each request with the state of all objects, and restartAfter ends each after so many events; 0 for never.
	initial      bool
	restartAfter int
	with         *client.Client
	collection   client.Collection
	labels       labels.Set
	quiet        string
	// strays makes it watch the objects of others, too: another client may create one of the round without the labels of the run.
	strays bool

	mu      sync.Mutex
	began   time.Time
	streams []history.Stream
	// position is the resourceVersion up to which everything was delivered; empty where that is not known.
	position string
	// building reports that the initial events have not ended.
	building bool
	// missed are changes that a list has shown, for the next stream.
	missed []history.Event
	// failures counts the requests that failed.
	failures int
	// Unsupported is the reason why the server does not serve such a watch.
	Unsupported error
	// Live are the objects that exist, as the watcher has seen them, by name.
	Live map[string]model.Object
	// Held are the terminating namespaces in which finalizers remain, by name.
	Held map[string]bool
	// writers are the field managers of other clients that have written objects, by the names of the objects.
	writers map[string][]string
	// changed is closed and replaced when something was delivered.
	changed chan struct{}
	// ending contains the wish to end the current request.
	ending chan struct{}
}

// run watches until the context ends.
func (w *Watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.watch(ctx)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
			w.mu.Lock()
			w.Unsupported = err
			w.notify()
			w.mu.Unlock()
			return
		case apierrors.IsGone(err), apierrors.IsResourceExpired(err):
			w.failed(true)
		case err != nil:
			w.failed(false)
			client.Wait(ctx, 50*time.Millisecond)
		}
	}
}

// failed notes that a request failed, and whether because the server no longer has the events after the position.
func (w *Watcher) failed(expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures++
	if expired {
		w.position = ""
	}
}

// watch makes one request and notes what it delivers. Where the position is not known it begins with a list.
func (w *Watcher) watch(ctx context.Context) error {
	w.mu.Lock()
	from := w.position
	w.mu.Unlock()
	options := metav1.ListOptions{LabelSelector: w.selector(), AllowWatchBookmarks: true, ResourceVersion: from}
	resumed := from != ""
	switch {
	case w.initial:
		options.ResourceVersion, options.SendInitialEvents = "", new(true)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	case !resumed:
		listed, response := w.with.List(ctx, w.collection, w.selector())
		if response.Err != nil {
			return response.Err
		}
		options.ResourceVersion = response.Object.GetResourceVersion()
		w.catchUp(listed)
	case w.restartAfter > 0: // its end brings a bookmark
		options.TimeoutSeconds = new(int64(3))
	}
	events, response := w.with.Watch(ctx, w.collection, options)
	if response.Err != nil {
		return response.Err
	}
	defer events.Stop()
	w.begin(history.Stream{ID: w.id, Label: w.label, From: options.ResourceVersion, Resumed: resumed && !w.initial})
	for count := 0; w.restartAfter == 0 || count < w.restartAfter || w.isBuilding(); count++ {
		select {
		case <-ctx.Done():
			return nil
		case <-w.ending:
			if !w.isBuilding() {
				return nil
			}
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			w.note(event)
		}
	}
	return nil
}

// End ends the current request, unless its initial events have not ended, and the watcher begins the next one where that has ended.
func (w *Watcher) End() {
	select {
	case w.ending <- struct{}{}:
	default: // another wish is pending
	}
}

// String names it in histories.
func (w *Watcher) String() string { return w.id }

func (w *Watcher) selector() string {
	if w.strays {
		return ""
	}
	selector := labels.Merge(w.labels, nil)
	if w.label != "" {
		selector[StateLabel] = w.label
	}
	return selector.String()
}

func (w *Watcher) isBuilding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.building
}

func (w *Watcher) begin(stream history.Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stream.Missed, w.missed = w.missed, nil
	w.streams = append(w.streams, stream)
	w.building = w.initial
	if w.initial {
		w.streams[len(w.streams)-1].From, w.position = "", ""
	} else {
		w.position = stream.From
	}
	w.notify()
}

// catchUp notes what a list shows and the watcher has not delivered.
func (w *Watcher) catchUp(listed []*client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := maps.Clone(w.Live)
	for _, object := range listed {
		delete(gone, object.GetName())
		if w.Live[object.GetName()].ResourceVersion != object.GetResourceVersion() {
			w.missed = append(w.missed, w.observe(watch.Modified, object))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		w.forget(name)
		w.missed = append(w.missed, history.Event{At: time.Since(w.began), Type: history.Deleted, Name: name, Object: gone[name]})
	}
}

func (w *Watcher) note(event watch.Event) {
	object, ok := event.Object.(*client.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	noted := w.observe(event.Type, object)
	if event.Type == watch.Bookmark {
		noted.Object = model.Object{ResourceVersion: object.GetResourceVersion()}
		noted.Pod = nil
		noted.InitialEventsEnd = object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		w.building = w.building && !noted.InitialEventsEnd
	}
	last := &w.streams[len(w.streams)-1]
	last.Events = append(last.Events, noted)
	if !w.building {
		w.position = noted.Object.ResourceVersion
	}
	w.notify()
}

// observe remembers the current state of an object, and returns the event that shows it.
func (w *Watcher) observe(change watch.EventType, object *client.Object) history.Event {
	observed := history.Event{At: time.Since(w.began), Type: string(change), Name: object.GetName(), Object: Snapshot(object), Pod: podOf(object)}
	switch change { //nolint:exhaustive // others are about no object
	case watch.Added, watch.Modified:
		w.Live[observed.Name], w.Held[observed.Name] = observed.Object, isHeld(object)
		if writers := writersOf(object); len(writers) > 0 {
			w.writers[observed.Name] = append(w.writers[observed.Name], writers...)
		}
	case watch.Deleted:
		w.forget(observed.Name)
	}
	return observed
}

func (w *Watcher) forget(name string) {
	delete(w.Live, name)
	delete(w.Held, name)
}

func (w *Watcher) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Cut waits until the watcher has delivered a version of the object that is written between rounds, and returns the streams of the round.
// The next round's begin there. Where it is not delivered in time, the last stream is marked as stalled.
func (w *Watcher) Cut(ctx context.Context, version string, patience time.Duration) []history.Stream {
	delivered := w.delivers(ctx, version, patience)
	if ctx.Err() != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take(version, delivered)
}

// outages is how often a watcher may begin to wait again because its requests have failed meanwhile.
const outages = 3

// delivers waits until the watcher has delivered a version.
func (w *Watcher) delivers(ctx context.Context, version string, patience time.Duration) bool {
	for range outages {
		before := w.failureCount()
		if w.Await(ctx, patience, func() bool { return w.HasDelivered(version) }) {
			return true
		}
		if w.failureCount() == before {
			return false
		}
	}
	return false
}

func (w *Watcher) failureCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures
}

// Await waits until something holds, or the server does not serve such a watch. It returns false after a timeout.
func (w *Watcher) Await(ctx context.Context, patience time.Duration, holds func() bool) bool {
	timeout := time.After(patience)
	for {
		w.mu.Lock()
		done, changed := holds() || w.Unsupported != nil, w.changed
		w.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-timeout:
			return false
		}
	}
}

// Current is an object as it was delivered last; empty if it does not exist.
func (w *Watcher) Current(name string) model.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Live[name]
}

// States are the objects of some names that exist, as they were delivered last.
func (w *Watcher) States(names []string) map[string]model.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	states := map[string]model.Object{}
	for _, name := range names {
		if object, ok := w.Live[name]; ok {
			states[name] = object
		}
	}
	return states
}

// TakeWriters returns the field managers of other clients that have written some objects, and forgets all of them.
func (w *Watcher) TakeWriters(names []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var writers []string
	for _, name := range names {
		writers = append(writers, w.writers[name]...)
	}
	clear(w.writers)
	return writers
}

// HasBegun reports whether a request of the watcher was answered, so that it delivers what is written from now on.
func (w *Watcher) HasBegun() bool { return len(w.streams) > 0 }

// take returns the streams up to a version, and keeps what was delivered after it. Initial events that have not ended go on in the next
// stream.
func (w *Watcher) take(version string, delivered bool) []history.Stream {
	if len(w.streams) == 0 || w.Unsupported != nil {
		w.streams = nil
		return nil
	}
	last, next := len(w.streams)-1, history.Stream{ID: w.id, Label: w.label, From: version}
	var later []history.Stream
	if w.building {
		next.From = ""
	}
	if delivered {
		var at int
		last, at = w.deliveryOf(version)
		events := w.streams[last].Events
		w.streams[last].Events, next.Events, later = events[:at+1:at+1], events[at+1:], w.streams[last+1:]
		if next.From = w.streams[last].From; at >= 0 {
			next.From = events[at].Object.ResourceVersion
		}
	}
	taken := w.streams[: last+1 : last+1]
	taken[last].To, taken[last].Stalled = version, !delivered
	if w.streams = append([]history.Stream{next}, later...); len(next.Events) == 0 && len(later) == 0 {
		w.position = next.From
	}
	return taken
}

// deliveryOf finds the event of the object that is written between rounds with a version, or the end of the initial events that contain it: the
// indexes of its stream and in that. The stream is -1 if there is none, and the event is -1 where the list before the stream has shown it.
func (w *Watcher) deliveryOf(version string) (stream, event int) {
	isIt := func(event history.Event) bool {
		return event.Name == w.quiet && event.Object.ResourceVersion == version
	}
	for i := range w.streams {
		if slices.ContainsFunc(w.streams[i].Missed, isIt) {
			return i, -1
		}
		at := slices.IndexFunc(w.streams[i].Events, isIt)
		if at < 0 {
			continue
		}
		if end := slices.IndexFunc(w.streams[i].Events, func(event history.Event) bool { return event.InitialEventsEnd }); end > at {
			at = end
		}
		return i, at
	}
	return -1, -1
}

// HasDelivered reports whether a version was delivered, and the last stream is not in the middle of its initial events.
func (w *Watcher) HasDelivered(version string) bool {
	stream, _ := w.deliveryOf(version)
	return !w.building && stream >= 0
}
