package journal

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Watches hold one watch a collection, narrowed to what a label selector matches, and write all they see into one
// journal.
type Watches struct {
	Journal  *Journal
	client   *client.Client
	selector string
	ctx      context.Context
	stop     context.CancelFunc

	mu   sync.Mutex
	open map[client.Collection]*follower
	// interruptions counts how often a watch ended that is to go on.
	interruptions int
}

// NewWatches watches nothing yet.
func NewWatches(from *client.Client, selector string) *Watches {
	watches := &Watches{Journal: &Journal{}, client: from, selector: selector, open: map[client.Collection]*follower{}}
	watches.ctx, watches.stop = context.WithCancel(context.Background())
	return watches
}

// Cover makes sure that a collection is watched from now on. It returns once the watch's starting point is fixed and the server
// has said whether it may be watched: nothing that happens later is missed, also when the connection breaks and is made again. The
// response is that of the request that fixed it, or that of a watch that is not allowed: who may list may not do so.
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

// follow begins to watch a collection from a resourceVersion on.
func (w *Watches) follow(collection client.Collection, start string) *follower {
	watching, stop := context.WithCancel(w.ctx)
	f := &follower{journal: w.Journal, version: start, stop: stop, begun: make(chan client.Response, 1)}
	f.begin = func(ctx context.Context, version string) (watch.Interface, error) {
		events, response := w.client.Watch(ctx, collection, metav1.ListOptions{
			ResourceVersion: version, LabelSelector: w.selector, AllowWatchBookmarks: true,
		})
		f.tell(response)
		return events, response.Err
	}
	f.onChange = func(whole bool) { w.note(f, whole) }
	w.open[collection] = f
	go func() {
		lost := crash.Caught("follow a watch", func() error { return f.follow(watching, collection) })
		if lost != nil {
			f.tell(client.Response{}) // for one that has not come to its first watch
			w.Leave(func(other client.Collection) bool { return other == collection })
			w.Journal.Fail(lost)
		}
	}()
	return f
}

// tell hands out the response to the first watch; nobody waits for those that follow.
func (f *follower) tell(response client.Response) {
	select {
	case f.begun <- response:
	default:
	}
}

// note says of a follower whether it has a watch now.
func (w *Watches) note(f *follower, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.interrupted = !whole; f.interrupted {
		w.interruptions++
	}
}

// Interruptions counts how often a watch has ended that is to go on, and says whether one has and does not go on yet. What
// happens meanwhile is seen later.
func (w *Watches) Interruptions() (count int, now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.open {
		now = now || f.interrupted
	}
	return w.interruptions, now
}

// Covers says whether a collection is watched.
func (w *Watches) Covers(collection client.Collection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, covered := w.open[collection]
	return covered
}

// Leave ends the watches of some collections. What is covered again later is watched again.
func (w *Watches) Leave(which func(client.Collection) bool) {
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
