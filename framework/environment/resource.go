package environment

import (
	"context"
	"slices"
	"time"

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
	trial, collection, err := e.trialOf(like)
	if err != nil {
		return false
	}
	trial.SetFinalizers([]string{client.Hold})
	if created := e.client.Create(ctx, trial); created.Err != nil {
		return false
	}
	defer e.clear(ctx, trial, collection)
	deleted := e.client.Delete(ctx, trial, metav1.DeleteOptions{})
	return deleted.Object != nil && slices.Contains(deleted.Object.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// learning is how long a garbage collector may take to learn of a kind: it looks every 30 s which there are.
const learning = 45 * time.Second

// AwaitCollector waits until the garbage collector has learned of the kind of an object, which may be served since a
// moment ago. It is given an object whose owner is not there. A collector that leaves that is for the behaviours to
// judge.
func (e *Environment) AwaitCollector(ctx context.Context, config *rest.Config, like *client.Object) {
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
	defer e.clear(ctx, trial, collection)
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, prober.AtLeast(learning), true, func(context.Context) (bool, error) {
		events, err := prober.Watches.Journal.Read(func(event journal.Event) bool {
			return event.Object.GetName() == trial.GetName() && (event.Type == watch.Deleted || event.Object.GetDeletionTimestamp() != nil)
		})
		return len(events) > 0, err
	})
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

// clear removes an object that was tried.
func (e *Environment) clear(ctx context.Context, trial *client.Object, collection client.Collection) {
	mine := labels.Merge(e.labels(1), labels.Set{client.SpecLabel: trial.GetLabels()[client.SpecLabel]})
	e.client.Clear(context.WithoutCancel(ctx), collection, mine.String())
}
