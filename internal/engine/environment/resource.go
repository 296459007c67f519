package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// OrphansByDefault reports whether a delete without a policy orphans the dependents of an object of this kind, as for Jobs and
// ReplicationControllers. It is false when that cannot be determined.
func (e *Environment) OrphansByDefault(ctx context.Context, like *client.Object) bool {
	if e.CreatesNothing() {
		return false
	}
	trial, _, err := e.trialOf(like)
	if err != nil {
		return false
	}
	trial.SetFinalizers([]string{client.Hold})
	if created := e.client.Create(ctx, trial); created.Err != nil {
		return false
	}
	defer e.client.Remove(context.WithoutCancel(ctx), trial, e.removal())
	deleted := e.client.Delete(ctx, trial, metav1.DeleteOptions{})
	return deleted.Object != nil && slices.Contains(deleted.Object.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// learning limits how long a garbage collector may take to discover a kind: it checks every 30 s.
const learning = 45 * time.Second

// AwaitGarbageCollector waits until the garbage collector has discovered the kind of an object, by creating an object whose owner does not
// exist. If the collector does not delete it, the behaviors detect that.
func (e *Environment) AwaitGarbageCollector(ctx context.Context, like *client.Object) {
	if _, without := e.unsupported[v1alpha1.GC]; without || e.CreatesNothing() {
		return
	}
	trial, collection, err := e.trialOf(like)
	if err != nil {
		return
	}
	worker := e.Session(1)
	watches := journal.NewWatches(e.client, worker.Labels().String())
	defer watches.Stop()
	trial.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: like.GetAPIVersion(), Kind: like.GetKind(), Name: trial.GetName() + "-absent", UID: uuid.NewUUID(),
	}})
	if covered := watches.Cover(ctx, collection); covered.Err != nil {
		return
	}
	if created := e.client.Create(ctx, trial); created.Err != nil {
		return
	}
	defer e.client.Remove(context.WithoutCancel(ctx), trial, e.removal())
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, worker.AtLeast(learning), true, func(context.Context) (bool, error) {
		events, err := watches.Journal.Read(func(event journal.Event) bool {
			return event.Object.GetName() == trial.GetName() && (event.Type == watch.Deleted || event.Object.GetDeletionTimestamp() != nil)
		})
		return len(events) > 0, err
	})
}

const (
	// acting is how long a controller may take to react to a new object: to add a finalizer, or to delete it.
	acting = 500 * time.Millisecond
	// releasing limits the wait for finalizers of other controllers, unless the user set a longer timeout, and releasePolling is the
	// interval for reading the object.
	releasing, releasePolling = 30 * time.Second, 100 * time.Millisecond
)

// Release is what other controllers do with a deleted object.
type Release struct {
	// Takes is how long they hold it; 0 when none does, or when it cannot be measured.
	Takes time.Duration
	// Never describes the finalizer that they did not remove, and the time limit; empty when they removed all.
	Never string
}

// TryRelease measures how long controllers hold a deleted object of this kind, up to a limit. It calls meanwhile while they may react to a
// new object. It fails when they delete a new object, which then cannot be tested.
func (e *Environment) TryRelease(ctx context.Context, like *client.Object, meanwhile func()) (Release, error) {
	trial, _, err := e.trialOf(like)
	if err != nil || e.CreatesNothing() {
		meanwhile()
		return Release{}, nil
	}
	created := e.client.Create(ctx, trial)
	acted := time.After(e.options.Slowed(acting))
	meanwhile()
	if created.Err != nil {
		return Release{}, nil
	}
	defer e.client.Remove(context.WithoutCancel(ctx), trial, e.removal())
	select {
	case <-acted:
	case <-ctx.Done():
		return Release{}, nil
	}
	if now := e.client.Get(ctx, created.Object); apierrors.IsNotFound(now.Err) || now.Object != nil && now.Object.GetDeletionTimestamp() != nil {
		return Release{}, fmt.Errorf("another controller deletes each new %s, so it cannot be tested: set --fixture to an object that remains", like.GetKind())
	}
	deleted := e.client.Delete(ctx, created.Object, metav1.DeleteOptions{})
	if deleted.Object == nil || deleted.Object.GetDeletionTimestamp() == nil {
		return Release{}, nil
	}
	return e.awaitRelease(ctx, deleted.Object), nil
}

// awaitRelease waits until other controllers have removed their finalizers from a deleted object.
func (e *Environment) awaitRelease(ctx context.Context, object *client.Object) Release {
	limit, began := e.Session(1).ReleaseLimit(releasing), time.Now()
	err := wait.PollUntilContextTimeout(ctx, releasePolling, limit, true, func(ctx context.Context) (bool, error) {
		now := e.client.Get(ctx, object)
		if now.Object != nil {
			object = now.Object
		}
		return apierrors.IsNotFound(now.Err), nil
	})
	if hold := client.ForeignHold(object, object.GetFinalizers()); err != nil && ctx.Err() == nil && hold != "" {
		return Release{Never: client.Unreleased(hold, limit)}
	}
	return Release{Takes: time.Since(began)}
}

// trialOf returns an object of a kind for an experiment, and its collection.
func (e *Environment) trialOf(like *client.Object) (*client.Object, client.Collection, error) {
	id := "probe-" + rand.String(6)
	trial := like.DeepCopy()
	trial.SetName(e.options.Run + "-" + id)
	trial.SetNamespace(e.namespaceOf(1))
	trial.SetLabels(labels.Merge(trial.GetLabels(), labels.Merge(e.labels(1), labels.Set{client.SpecLabel: id})))
	collection, err := e.client.CollectionOf(trial)
	trial.SetNamespace(collection.Namespace)
	return trial, collection, err
}
