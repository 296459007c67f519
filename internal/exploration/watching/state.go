package watching

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

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
