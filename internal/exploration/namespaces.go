package exploration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// createNamespaces creates the namespaces of a round, and distributes its objects over them.
func (d *Driver) createNamespaces(ctx context.Context, current *round) error {
	d.namespaces.StartRound(current.began)
	var created []string
	for i := range namespaces {
		namespace := fixtures.Namespace(d.settings.Run + "-" + nameAt(current.number, i))
		namespace.SetLabels(d.settings.Labels())
		if response := d.own.Create(ctx, namespace); response.Err != nil {
			return fmt.Errorf("%w: create namespace %q: %w", ErrSkipped, namespace.GetName(), response.Err)
		}
		created = append(created, namespace.GetName())
	}
	current.homes = map[string]string{}
	for i, name := range current.names {
		current.homes[name] = created[i%namespaces]
	}
	return nil
}

// isTerminating reports whether a create was refused because its namespace is terminating.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// terminationTime is how long the namespace controller may take to remove namespaces in which nothing is held any longer, on a fast cluster.
// After finalizers have kept it from that it waits for 8 s before it tries again.
const terminationTime = time.Minute

// retryTime is within what time the namespace controller looks again at a namespace whose content was held: at 5 s as its conditions have
// changed, and 8 s after that.
const retryTime = 16 * time.Second

// terminate deletes the round's namespaces, waits until only held objects keep them, releases these, waits until the namespaces are gone, tries
// to create an object in each, and returns the events of their watch. Rounds release at different moments of the controller's retries.
func (a *actor) terminate(ctx context.Context) ([]history.Event, error) {
	var deletes, late generate.Program
	for i := range namespaces {
		deletes = append(deletes, generate.Intent{Verb: model.Delete, Object: i, Namespace: true})
		late = append(late, generate.Intent{Verb: model.Get, Object: i, Namespace: true}, generate.Intent{Verb: model.Create, Object: i})
	}
	// twice, as the response to the first may be lost
	if err := a.run(ctx, slices.Concat(deletes, deletes)); err != nil {
		return nil, err
	}
	a.awaitNamespaces(ctx, func(namespace string) bool { return a.namespaces.Held[namespace] })
	client.Wait(ctx, time.Duration(a.round.number)*3*time.Second%retryTime)
	if err := a.release(ctx); err != nil {
		return nil, err
	}
	a.awaitNamespaces(ctx, func(string) bool { return false })
	return a.namespaces.Events(), errors.Join(a.run(ctx, late), a.getControllersObjects(ctx))
}

// getControllersObjects gets what controllers create in every namespace, and create again when it is deleted.
func (a *actor) getControllersObjects(ctx context.Context) error {
	account, certificates := fixtures.ServiceAccount(), fixtures.ConfigMap("kube-root-ca.crt")
	account.SetName("default")
	for _, home := range slices.Compact(slices.Sorted(maps.Values(a.round.homes))) {
		for _, object := range []*client.Object{account, certificates} {
			object.SetNamespace(home)
			r := about(object.DeepCopy(), model.Operation{Verb: model.Get})
			r.recorded.Name = home + "/" + object.GetName()
			a.round.homes[r.recorded.Name] = home
			if err := a.send(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitNamespaces waits until something holds for each namespace of the round that is not gone, within the time for their termination.
func (a *actor) awaitNamespaces(ctx context.Context, holds func(namespace string) bool) {
	a.namespaces.Await(ctx, a.settings.AtLeast(terminationTime), func() bool {
		return !slices.ContainsFunc(a.round.names, func(name string) bool {
			home := a.round.homes[name]
			_, lives := a.namespaces.Live[home]
			return lives && !holds(home)
		})
	})
}
