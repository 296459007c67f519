package journal

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

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
	open map[client.Collection]context.CancelFunc
}

// NewWatches watches nothing yet.
func NewWatches(from *client.Client, selector string) *Watches {
	watches := &Watches{Journal: &Journal{}, client: from, selector: selector, open: map[client.Collection]context.CancelFunc{}}
	watches.ctx, watches.stop = context.WithCancel(context.Background())
	return watches
}

// Cover makes sure that a collection is watched from now on. It returns once the watch's starting point is fixed: nothing
// that happens later is missed, also when the connection breaks and is made anew. The response is that of the request
// that fixed it.
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
	watching, stop := context.WithCancel(w.ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(watching, start, w.client.Watcher(collection, w.selector))
	if err != nil {
		stop()
		return client.Response{Asked: "watch " + collection.Resource.Resource, Err: err}
	}
	w.open[collection] = stop
	go func() {
		lost := crash.Caught("follow a watch", func() error { return w.Journal.Follow(watching, collection, watcher) })
		if lost != nil {
			w.Leave(func(other client.Collection) bool { return other == collection })
			w.Journal.Fail(lost)
		}
	}()
	return response
}

// Leave ends the watches of some collections. What is covered again later is watched anew.
func (w *Watches) Leave(which func(client.Collection) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for collection, stop := range w.open {
		if which(collection) {
			stop()
			delete(w.open, collection)
		}
	}
}

// Stop ends all watches.
func (w *Watches) Stop() { w.stop() }

// Follow writes a watch's events down until it ends. It fails when the watch ended before the context did and cannot be
// resumed without a gap: what was seen on it can then no longer be judged.
func (j *Journal) Follow(ctx context.Context, collection client.Collection, watcher watch.Interface) error {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error && ctx.Err() == nil {
			return fmt.Errorf("the watch on %s was lost: %w", collection.Resource.Resource, apierrors.FromObject(event.Object))
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if ok && event.Type != watch.Bookmark && event.Type != watch.Error {
			j.Add(Event{At: time.Now(), Type: event.Type, Object: object})
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("the watch on %s ended and could not be resumed", collection.Resource.Resource)
	}
	return nil
}
