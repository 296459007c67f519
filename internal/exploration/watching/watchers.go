// Package watching watches what a round of exploration changes, and records it as the model knows it.
package watching

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Label is the value of StateLabel that watches by label select.
const Label = "x"

// Of are the watchers of a collection: without end, with resumptions, from initial events, and with a selector. Quiet is the name of the object
// that is written between rounds.
func Of(collection client.Collection, selected labels.Set, quiet string) []*Watcher {
	watchers := []*Watcher{
		{id: "the watch"},
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
	w.with = with
	w.changed, w.Live, w.Held, w.began = make(chan struct{}), map[string]model.Object{}, map[string]bool{}, time.Now()
	group.Go(func() {
		_ = crash.Caught("watch", func() error { w.run(ctx); return nil }) // what it missed is noticed
	})
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
