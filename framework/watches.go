package framework

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// watches hold one watch a resource and namespace, narrowed to what this worker made, and write all they see into one
// journal.
type watches struct {
	client  *client
	terms   Terms
	journal *journal
	open    map[watched]*watchtools.RetryWatcher
	ctx     context.Context
	stop    context.CancelFunc
}

// watched is what one watch is about; the namespace is empty for cluster-scoped resources.
type watched struct {
	resource  schema.GroupVersionResource
	namespace string
}

func newWatches(client *client, terms Terms) *watches {
	ctx, stop := context.WithCancel(context.Background())
	return &watches{
		client:  client,
		terms:   terms,
		journal: &journal{},
		open:    map[watched]*watchtools.RetryWatcher{},
		ctx:     ctx,
		stop:    stop,
	}
}

// cover makes sure that objects of this kind and namespace are watched from now on. It returns once the watch's
// starting point is fixed: nothing that happens later is missed, also when the connection breaks and is made anew.
func (w *watches) cover(ctx context.Context, object *Object) error {
	mapping, err := w.client.mapping(object)
	if err != nil {
		return err
	}
	about := watched{resource: mapping.Resource}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		about.namespace = object.GetNamespace()
	}
	if _, covered := w.open[about]; covered {
		return nil
	}
	scope := w.client.dynamic.Resource(about.resource).Namespace(about.namespace)
	selector := w.terms.selector()
	start, err := w.client.version(ctx, collectionPath(about.resource, about.namespace), selector)
	if err != nil {
		return fmt.Errorf("list %s before watching them: %w", about.resource.Resource, err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(w.ctx, start, &labelled{scope, selector})
	if err != nil {
		return fmt.Errorf("watch %s: %w", about.resource.Resource, err)
	}
	w.open[about] = watcher
	go w.follow(about, watcher)
	return nil
}

// labelled watches what carries the labels of a worker.
type labelled struct {
	resource dynamic.ResourceInterface
	selector string
}

var _ cache.WatcherWithContext = &labelled{}

func (l *labelled) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = l.selector
	return l.resource.Watch(ctx, options)
}

// follow writes a watch's events down until it ends. A watch ends by itself only when it cannot be resumed without a
// gap; what was seen on it can then no longer be judged.
func (w *watches) follow(about watched, watcher *watchtools.RetryWatcher) {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			w.journal.fail(fmt.Errorf("the watch on %s was lost: %w", about.resource.Resource, apierrors.FromObject(event.Object)))
			return
		}
		if object, ok := event.Object.(*Object); ok {
			w.journal.add(Event{At: time.Now(), Type: event.Type, Object: object})
		}
	}
	if w.ctx.Err() == nil {
		w.journal.fail(fmt.Errorf("the watch on %s ended and could not be resumed", about.resource.Resource))
	}
}
