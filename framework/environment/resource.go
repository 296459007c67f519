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
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// OrphansByDefault says whether a delete that names no policy orphans the dependents of an object of this kind, as it
// does those of Jobs and ReplicationControllers. What cannot be tried does not.
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

// learning is how long a garbage collector may take to learn of a kind: it looks every 30 s which there are.
const learning = 45 * time.Second

// AwaitGarbageCollector waits until the garbage collector has learned of the kind of an object, which may be served since a
// moment ago. It is given an object whose owner is not there. A collector that leaves that is for the behaviors to
// test.
func (e *Environment) AwaitGarbageCollector(ctx context.Context, config *rest.Config, like *client.Object) {
	if _, without := e.unsupported[v1alpha1.GC]; without || e.CreatesNothing() {
		return
	}
	trial, collection, err := e.trialOf(like)
	if err != nil {
		return
	}
	prober, err := session.Connect(config, e.Session(1))
	if err != nil {
		return
	}
	defer prober.Close()
	trial.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: like.GetAPIVersion(), Kind: like.GetKind(), Name: trial.GetName() + "-absent", UID: uuid.NewUUID(),
	}})
	if covered := prober.Watches.Cover(ctx, collection); covered.Err != nil {
		return
	}
	if created := e.client.Create(ctx, trial); created.Err != nil {
		return
	}
	defer e.client.Remove(context.WithoutCancel(ctx), trial, e.removal())
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, prober.AtLeast(learning), true, func(context.Context) (bool, error) {
		events, err := prober.Watches.Journal.Read(func(event journal.Event) bool {
			return event.Object.GetName() == trial.GetName() && (event.Type == watch.Deleted || event.Object.GetDeletionTimestamp() != nil)
		})
		return len(events) > 0, err
	})
}

const (
	// acting is how long a controller may take to do something about a new object: to put a finalizer on it, or to delete it.
	acting = 500 * time.Millisecond
	// releasing is how long others are waited for to let go of an object, and releasePolling how often it is looked.
	releasing, releasePolling = 30 * time.Second, 100 * time.Millisecond
)

// ReleaseTime is how long others hold an object of this kind when it is deleted, at most what is waited for them; 0 where
// nobody does, or where it cannot be tried. Meanwhile is done while they may act on a new one. It fails where they delete it,
// though nobody has asked them to: then nothing can be said of such objects.
func (e *Environment) ReleaseTime(ctx context.Context, like *client.Object, meanwhile func()) (time.Duration, error) {
	trial, _, err := e.trialOf(like)
	if err != nil || e.CreatesNothing() {
		meanwhile()
		return 0, nil
	}
	created := e.client.Create(ctx, trial)
	acted := time.After(e.Session(1).Slowed(acting))
	meanwhile()
	if created.Err != nil {
		return 0, nil
	}
	defer e.client.Remove(context.WithoutCancel(ctx), trial, e.removal())
	select {
	case <-acted:
	case <-ctx.Done():
		return 0, nil
	}
	if now := e.client.Get(ctx, created.Object); apierrors.IsNotFound(now.Err) || now.Object != nil && now.Object.GetDeletionTimestamp() != nil {
		return 0, fmt.Errorf("somebody deletes each new %s, as if it were not wanted: nothing can be tested of those; --fixture FILE takes one that stays", like.GetKind())
	}
	deleted := e.client.Delete(ctx, created.Object, metav1.DeleteOptions{})
	if deleted.Object == nil || deleted.Object.GetDeletionTimestamp() == nil {
		return 0, nil
	}
	began := time.Now()
	_ = wait.PollUntilContextTimeout(ctx, releasePolling, e.Session(1).Slowed(releasing), true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(e.client.Get(ctx, created.Object).Err), nil
	})
	return time.Since(began), nil
}

// trialOf is an object of a kind, to be created to see what becomes of it, and where it will be.
func (e *Environment) trialOf(like *client.Object) (*client.Object, client.Collection, error) {
	id := "probe-" + rand.String(6)
	trial := like.DeepCopy()
	trial.SetName(e.options.Run + "-" + id)
	trial.SetNamespace(e.Session(1).Namespace)
	trial.SetLabels(labels.Merge(trial.GetLabels(), labels.Merge(e.labels(1), labels.Set{client.SpecLabel: id})))
	collection, err := e.client.CollectionOf(trial)
	trial.SetNamespace(collection.Namespace)
	return trial, collection, err
}
