// Package watching watches what a round of exploration changes, and records it as the model knows it.
package watching

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// RoundLabel is on the objects of a round, with its number. Lists and deletecollections select by it.
	RoundLabel = client.Domain + "/round"
	// StateLabel and ValueAnnotation are the label and the annotation that the model knows.
	StateLabel      = client.Domain + "/state"
	ValueAnnotation = client.Domain + "/value"
	// TemplateAnnotation is on pods and their templates, and distinguishes these. Other clients that write pods leave it.
	TemplateAnnotation = client.Domain + "/template"
	// Label is the value of StateLabel that watches by label select.
	Label = "x"
	// Prefix is what the names of finalizers begin with that the model calls by the rest.
	Prefix = client.Domain + "/"
)

// Of are the watchers of a collection: without end, with resumptions, from initial events, and with a selector. Quiet is the name of the object
// that is written between rounds.
func Of(collection client.Collection, selected labels.Set, quiet string, strays bool) []*Watcher {
	watchers := []*Watcher{
		{id: "the watch", strays: strays},
		{id: "the watch that is resumed", restartAfter: 23},
		{id: "the watch from initial events", initial: true, restartAfter: 61},
		{id: "the watch by label", label: Label},
		{id: "the watch by label that is resumed", label: Label, restartAfter: 11},
	}
	for _, w := range watchers {
		w.collection, w.labels, w.quiet = collection, selected, quiet
	}
	return watchers
}

// OfNamespaces watches namespaces.
func OfNamespaces(selected labels.Set) *Watcher {
	return &Watcher{id: "the watch of namespaces", collection: client.Namespaces, labels: selected}
}

// Start watches until the context ends, in a group.
func (w *Watcher) Start(ctx context.Context, with *client.Client, group *sync.WaitGroup) {
	w.prepare(with)
	group.Go(func() {
		_ = crash.Caught("watch", func() error { w.run(ctx); return nil }) // what it missed is noticed
	})
}

func (w *Watcher) prepare(with *client.Client) {
	w.with = with
	w.changed, w.Live, w.Held, w.began = make(chan struct{}), map[string]model.Object{}, map[string]bool{}, time.Now()
	w.writers, w.ending = map[string][]string{}, make(chan struct{}, 1)
}

// InitialEvents watches a collection from the beginning until the initial events end, and returns them. It returns none where the server does not
// serve such a watch, or does not end them in time.
func InitialEvents(ctx context.Context, with *client.Client, collection client.Collection, selected labels.Set, began time.Time) []history.Stream {
	w := &Watcher{id: "a watch after the round", initial: true, restartAfter: 1, collection: collection, labels: selected}
	w.prepare(with)
	w.StartRound(began)
	if err := w.watch(ctx); err != nil || w.building {
		return nil
	}
	return w.streams
}

// StartRound makes the times of events those since a round began.
func (w *Watcher) StartRound(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = began
}

// Events returns what the watcher has delivered, and forgets it.
func (w *Watcher) Events() []history.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []history.Event
	for i := range w.streams {
		events = append(append(events, w.streams[i].Missed...), w.streams[i].Events...)
		w.streams[i].Missed, w.streams[i].Events = nil, nil
	}
	w.streams = w.streams[len(w.streams)-1:]
	return events
}

// shortName is what the model calls a finalizer: one of the run without its domain, and one of others that has no domain after a slash.
func shortName(finalizer string) string {
	short, isOwn := strings.CutPrefix(finalizer, Prefix)
	if isOwn || isWhole(short) {
		return short
	}
	return "/" + short
}

// isWhole reports whether the model calls a finalizer by its whole name: those with a domain, and those of the garbage collector.
func isWhole(finalizer string) bool {
	return strings.Contains(finalizer, "/") || finalizer == model.Foreground || finalizer == model.Orphan
}

// FinalizerOf is the finalizer that the model calls by a short name.
func FinalizerOf(short string) string {
	if name, isOthers := strings.CutPrefix(short, "/"); isOthers {
		return name
	}
	if isWhole(short) {
		return short
	}
	return Prefix + short
}

// Snapshot is what the model knows of an object.
func Snapshot(object *client.Object) model.Object {
	known := model.Object{
		UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion(),
		Terminating: object.GetDeletionTimestamp() != nil,
		Label:       object.GetLabels()[StateLabel],
		Value:       object.GetAnnotations()[ValueAnnotation],
		Stray:       object.GetLabels()[RoundLabel] == "" || object.GetLabels()[client.RunLabel] == "",
	}
	var finalizers, owners []string
	for _, finalizer := range object.GetFinalizers() {
		finalizers = append(finalizers, shortName(finalizer))
	}
	for _, owner := range object.GetOwnerReferences() {
		owners = append(owners, model.Owner{
			Name: owner.Name, UID: string(owner.UID), Blocks: owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion,
		}.String())
	}
	known.Finalizers, known.Owners = model.NamesOf(finalizers...), model.NamesOf(owners...)
	return known
}

// writersOf are the field managers of an object that are none of the run's.
func writersOf(object *client.Object) []string {
	var writers []string
	for _, entry := range object.GetManagedFields() {
		if !strings.HasPrefix(entry.Manager, client.Domain) {
			writers = append(writers, entry.Manager)
		}
	}
	return writers
}

// podOf is what matters for the graceful deletion of an object; nil if it is no pod.
func podOf(object *client.Object) *history.Pod {
	if object.GetKind() != "Pod" {
		return nil
	}
	pod := describe.Pod(object)
	known := &history.Pod{Scheduled: pod.Spec.NodeName != "", Grace: pod.DeletionGracePeriodSeconds}
	known.Running = slices.ContainsFunc(describe.Containers(object), func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
	if termination := pod.Spec.TerminationGracePeriodSeconds; termination != nil {
		known.Termination = *termination
	}
	if pod.DeletionTimestamp != nil {
		known.Deadline = &pod.DeletionTimestamp.Time
	}
	return known
}

// isHeld reports whether the namespace controller has found finalizers in a namespace that is terminating.
func isHeld(object *client.Object) bool {
	return meta.IsStatusConditionTrue(describe.Conditions(object), string(corev1.NamespaceFinalizersRemaining))
}
