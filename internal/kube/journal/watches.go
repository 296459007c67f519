package journal

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Watches keep one watch for each collection, restricted by a label selector, and record all events in one journal.
type Watches struct {
	Journal  *Journal
	client   *client.Client
	selector string
	ctx      context.Context
	stop     context.CancelFunc

	mu   sync.Mutex
	open map[client.Collection]*follower
	// interruptions counts the watches that ended and are resumed.
	interruptions int
}

// NewWatches returns Watches without any watch.
func NewWatches(from *client.Client, selector string) *Watches {
	watches := &Watches{Journal: &Journal{}, client: from, selector: selector, open: map[client.Collection]*follower{}}
	watches.ctx, watches.stop = context.WithCancel(context.Background())
	return watches
}

// Cover ensures that a collection is watched. It returns after the watch's starting point is fixed and the server has accepted the watch.
// No later event is missed, even if the connection breaks. The response is that of the list that fixed the starting point, or of a refused
// watch, because the permission to list does not include watch.
func (w *Watches) Cover(ctx context.Context, collection client.Collection) client.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, covered := w.open[collection]; covered {
		return client.Response{}
	}
	start, response := w.client.ResourceVersion(ctx, collection, w.selector)
	if response.Err != nil {
		return response
	}
	f := w.follow(collection, start)
	select {
	case begun := <-f.begun:
		if apierrors.IsForbidden(begun.Err) {
			f.stop()
			delete(w.open, collection)
			return begun
		}
	case <-ctx.Done():
	}
	return response
}

// follow starts a watch of a collection at a resourceVersion.
func (w *Watches) follow(collection client.Collection, start string) *follower {
	watching, stop := context.WithCancel(w.ctx)
	f := &follower{journal: w.Journal, version: start, stop: stop, begun: make(chan client.Response, 1)}
	f.begin = func(ctx context.Context, version string) (watch.Interface, error) {
		events, response := w.client.Watch(ctx, collection, metav1.ListOptions{
			ResourceVersion: version, LabelSelector: w.selector, AllowWatchBookmarks: true,
		})
		f.respond(response)
		return events, response.Err
	}
	f.onChange = func(whole bool) { w.note(f, whole) }
	w.open[collection] = f
	go func() {
		lost := crash.Caught("follow a watch", func() error { return f.follow(watching, collection) })
		if lost != nil {
			f.respond(client.Response{}) // if the first watch has not been established
			w.Drop(func(other client.Collection) bool { return other == collection })
			w.Journal.Fail(lost)
		}
	}()
	return f
}

// respond sends the response to the first watch; later ones have no receiver.
func (f *follower) respond(response client.Response) {
	select {
	case f.begun <- response:
	default:
	}
}

// note records whether a follower's watch is established.
func (w *Watches) note(f *follower, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.interrupted = !whole; f.interrupted {
		w.interruptions++
	}
}

// Interruptions returns how many watches have been interrupted, and whether one is now. Events that occur during an interruption are
// recorded later.
func (w *Watches) Interruptions() (count int, now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.open {
		now = now || f.interrupted
	}
	return w.interruptions, now
}

// Covers reports whether a collection is watched.
func (w *Watches) Covers(collection client.Collection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, covered := w.open[collection]
	return covered
}

// Drop stops the watches of some collections. Cover starts them again.
func (w *Watches) Drop(which func(client.Collection) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for collection, f := range w.open {
		if which(collection) {
			f.stop()
			delete(w.open, collection)
		}
	}
}

// Stop ends all watches.
func (w *Watches) Stop() { w.stop() }
