package preflight

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
func OrphansByDefault(ctx context.Context, t Target, like *client.Object) bool {
	if t.NoCreate {
		return false
	}
	trial, err := trialOf(t, like)
	if err != nil {
		return false
	}
	trial.SetFinalizers([]string{client.Hold})
	if created := t.Client.Create(ctx, trial); created.Err != nil {
		return false
	}
	defer t.Client.Remove(context.WithoutCancel(ctx), trial, t.Removal())
	deleted := t.Client.Delete(ctx, trial, metav1.DeleteOptions{})
	return deleted.Object != nil && slices.Contains(deleted.Object.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// learning limits how long a garbage collector may take to discover a kind: it checks every 30 s.
const learning = 45 * time.Second

// AwaitGarbageCollector waits until the garbage collector has discovered the kind of an object, by creating an object whose owner does not
// exist. If the collector does not delete it, the behaviors detect that.
func AwaitGarbageCollector(ctx context.Context, t Target, like *client.Object) {
	if _, without := t.Unsupported[v1alpha1.GC]; without || t.NoCreate {
		return
	}
	trial, err := trialOf(t, like)
	if err != nil {
		return
	}
	watches := journal.NewWatches(t.Client, t.Labels().String())
	defer watches.Stop()
	trial.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: like.GetAPIVersion(), Kind: like.GetKind(), Name: trial.GetName() + "-absent", UID: uuid.NewUUID(),
	}})
	if _, err := createWatched(ctx, t.Client, watches, trial); err != nil {
		return
	}
	defer t.Client.Remove(context.WithoutCancel(ctx), trial, t.Removal())
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, t.AtLeast(learning), true, func(context.Context) (bool, error) {
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
	// Duration is how long they hold it; 0 when none does, or when it cannot be measured.
	Duration time.Duration
	// NotRemoved describes the finalizer that they did not remove, and the time limit; empty when they removed all.
	NotRemoved string
}

// TryRelease measures how long controllers hold a deleted object of this kind, up to a limit. It calls meanwhile while they may react to a
// new object. It fails when they delete a new object, which then cannot be tested.
func TryRelease(ctx context.Context, t Target, like *client.Object, meanwhile func()) (Release, error) {
	trial, err := trialOf(t, like)
	if err != nil || t.NoCreate {
		meanwhile()
		return Release{}, nil
	}
	created := t.Client.Create(ctx, trial)
	acted := time.After(t.Slowed(acting))
	meanwhile()
	if created.Err != nil {
		return Release{}, nil
	}
	defer t.Client.Remove(context.WithoutCancel(ctx), trial, t.Removal())
	select {
	case <-acted:
	case <-ctx.Done():
		return Release{}, nil
	}
	if now := t.Client.Get(ctx, created.Object); apierrors.IsNotFound(now.Err) || now.Object != nil && now.Object.GetDeletionTimestamp() != nil {
		return Release{}, fmt.Errorf("another controller deletes each new %s, so it cannot be tested: set --fixture to an object that remains", like.GetKind())
	}
	deleted := t.Client.Delete(ctx, created.Object, metav1.DeleteOptions{})
	if deleted.Object == nil || deleted.Object.GetDeletionTimestamp() == nil {
		return Release{}, nil
	}
	return awaitRelease(ctx, t, deleted.Object), nil
}

// awaitRelease waits until other controllers have removed their finalizers from a deleted object.
func awaitRelease(ctx context.Context, t Target, object *client.Object) Release {
	limit, began := t.ReleaseLimit(releasing), time.Now()
	err := wait.PollUntilContextTimeout(ctx, releasePolling, limit, true, func(ctx context.Context) (bool, error) {
		now := t.Client.Get(ctx, object)
		if now.Object != nil {
			object = now.Object
		}
		return apierrors.IsNotFound(now.Err), nil
	})
	if hold := client.ForeignHold(object, object.GetFinalizers()); err != nil && ctx.Err() == nil && hold != "" {
		return Release{NotRemoved: client.Unreleased(hold, limit)}
	}
	return Release{Duration: time.Since(began)}
}

// trialOf returns an object of a kind for an experiment.
func trialOf(t Target, like *client.Object) (*client.Object, error) {
	id := "probe-" + rand.String(6)
	trial := like.DeepCopy()
	trial.SetName(t.Run + "-" + id)
	trial.SetNamespace(t.Namespace)
	trial.SetLabels(labels.Merge(trial.GetLabels(), labels.Merge(t.Labels(), labels.Set{client.SpecLabel: id})))
	collection, err := t.Client.CollectionOf(trial)
	trial.SetNamespace(collection.Namespace)
	return trial, err
}
