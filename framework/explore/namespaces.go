package explore

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// createNamespaces creates the namespaces of a round, and distributes its objects over them.
func (d *Driver) createNamespaces(ctx context.Context, current *round) error {
	d.namespaces.startRound(current.began)
	var created []string
	for i := range namespaces {
		namespace := fixtures.Namespace(fmt.Sprintf("%s-r%d-%c", d.settings.Run, current.number, 'a'+i))
		namespace.SetLabels(d.settings.Labels())
		if response := d.own.Create(ctx, namespace); response.Err != nil {
			return fmt.Errorf("%w: create namespace %q: %w", ErrPrevented, namespace.GetName(), response.Err)
		}
		created = append(created, namespace.GetName())
	}
	current.homes = map[string]string{}
	for i, name := range current.names {
		current.homes[name] = created[i%namespaces]
	}
	return nil
}

// aboutNamespace is a request about a namespace of the round.
func (a *actor) aboutNamespace(name string, verb model.Verb) request {
	r := request{object: fixtures.Namespace(name), http: client.Request{Method: http.MethodGet}, recorded: history.Request{Name: name}}
	r.recorded.Operation.Verb = verb
	if verb == model.Delete {
		r.http = client.Request{Method: http.MethodDelete, Body: deleteOptions(r.recorded.Operation, generate.Intent{})}
	}
	return r
}

// isTerminating reports whether a create was refused because its namespace is terminating.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// terminationTime is how long the namespace controller may take to remove namespaces in which nothing is held any longer, on a fast cluster.
// After finalizers have kept it from that it waits for 8 s before it tries again.
const terminationTime = time.Minute

// terminate releases the round's objects, deletes its namespaces, waits until these are gone, tries to create an object in each, and returns
// the events of their watch.
func (a *actor) terminate(ctx context.Context) ([]history.Event, error) {
	var release, deletes, late generate.Program
	for i := range a.round.names {
		release = append(release, generate.Intent{Verb: model.Patch, Object: i, Release: true})
	}
	for i := range namespaces {
		deletes = append(deletes, generate.Intent{Verb: model.Delete, Object: i, Namespace: true})
		late = append(late, generate.Intent{Verb: model.Get, Object: i, Namespace: true}, generate.Intent{Verb: model.Create, Object: i})
	}
	// twice, as the response to the first may be lost
	if err := a.run(ctx, slices.Concat(release, release, deletes, deletes)); err != nil {
		return nil, err
	}
	watch := a.namespaces
	watch.await(ctx, a.settings.AtLeast(terminationTime), func() bool {
		return !slices.ContainsFunc(a.round.names, func(name string) bool {
			_, lives := watch.live[a.round.homes[name]]
			return lives
		})
	})
	return watch.events(), a.run(ctx, late)
}

// events returns what the watcher has delivered, and forgets it.
func (w *watcher) events() []history.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []history.Event
	for i := range w.streams {
		events = append(events, w.streams[i].Events...)
		w.streams[i].Events = nil
	}
	w.streams = w.streams[len(w.streams)-1:]
	return events
}
