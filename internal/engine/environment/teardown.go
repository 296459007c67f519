package environment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// stuckTimeout is how long a run waits for its namespaces while an APIService is unavailable. Their content is deleted, but they are not.
const stuckTimeout = 20 * time.Second

// remove removes everything that the run created, and waits until it is gone. It removes the run's own finalizers and waits for those of
// other controllers. After the timeout it fails with an error that names what is left and what holds it. While an APIService is unavailable it
// does not wait for namespaces, but fails with an error that names both.
func (c cleanup) remove(ctx context.Context) error {
	if c.shared != "" {
		return c.tearDown(ctx)
	}
	if unavailable, err := preflight.UnavailableAPIs(ctx, c.client); err != nil || len(unavailable) == 0 {
		err := c.tearDown(ctx)
		if err != nil && c.slow != "" {
			return fmt.Errorf("namespaces are deleted slowly: %s: %w", c.slow, err)
		}
		return err
	}
	short, cancel := context.WithTimeout(ctx, c.settings.Slowed(stuckTimeout))
	defer cancel()
	if err := c.tearDown(short); err == nil {
		return nil
	}
	unavailable, err := preflight.UnavailableAPIs(ctx, c.client)
	if err != nil || len(unavailable) == 0 {
		return c.tearDown(ctx) // it is available again
	}
	namespaces, err := c.start(time.Now()).allNamespaces(ctx)
	var names []string
	for _, namespace := range namespaces {
		names = append(names, fmt.Sprintf("%q", namespace.GetName()))
	}
	slices.Sort(names)
	return errors.Join(fmt.Errorf("%s: until it is repaired or deleted no namespace of the cluster can be deleted, and these remain: %s",
		strings.Join(unavailable, "; "), strings.Join(names, ", ")), err)
}

// tearDown is one attempt to remove everything.
func (c cleanup) tearDown(ctx context.Context) error {
	t := c.start(time.Now())
	waiting, cancel := context.WithDeadline(ctx, t.end)
	defer cancel()
	if response := t.client.Send(waiting, client.Request{Method: http.MethodGet, Path: "/version"}); response.StatusCode == 0 {
		return fmt.Errorf("the server no longer responds: %w", response.Err)
	} else if apierrors.IsUnauthorized(response.Err) {
		return fmt.Errorf("the server no longer accepts the credentials (401): %w", response.Err)
	}
	t.client.Rediscover()
	started := startController(waiting, t.client, t.settings.Controller, t.run)
	if t.shared != "" {
		return errors.Join(started, t.emptyNamespace(ctx, waiting, t.shared))
	}
	return errors.Join(t.removeAll(ctx, waiting), started)
}

// startController starts the controller again if a spec of the run has stopped it.
func startController(ctx context.Context, with *client.Client, which session.Controller, run string) error {
	if !which.IsDeployment() {
		return nil
	}
	if response := with.Get(ctx, which.Object()); apierrors.IsForbidden(response.Err) {
		return nil // without the permission the run cannot have stopped it
	}
	return controller.Start(ctx, with, which, run).Err
}

// removeAll removes the run's cluster-scoped objects, its namespaces and, when controllers have had the time to report the deletions, Events.
func (t *teardown) removeAll(ctx, waiting context.Context) error {
	if t.kept != nil {
		t.findKept(waiting)
	}
	namespaces, err := t.allNamespaces(waiting)
	held, failures := t.clearClusterScoped(waiting)
	failures = append(failures, err)
	failed := make([]error, len(namespaces))
	terminating := make([]*awaited, len(namespaces))
	crash.InParallel(t.workers, len(namespaces), func(i int) { terminating[i], failed[i] = t.removeNamespace(waiting, namespaces[i]) })
	terminating = slices.DeleteFunc(terminating, func(one *awaited) bool { return one == nil })
	t.clearEventsOnce(waiting) // most of them, while namespaces are deleted
	if t.kept != nil {
		failures = append(failures, t.clearKept(ctx, waiting))
	}
	failures = append(failures, errors.Join(failed...), t.awaitNamespaces(ctx, waiting, terminating), t.awaitClusterScoped(ctx, waiting, held))
	t.clearEvents(waiting)
	return errors.Join(failures...)
}

// allNamespaces returns the namespaces that the run created, including those of specs if the credentials may list them.
func (t *teardown) allNamespaces(ctx context.Context) ([]*client.Object, error) {
	all := slices.DeleteFunc(slices.Clone(t.namespaces), t.kept.has)
	labelled, response := t.own(ctx, client.Namespaces)
	for _, namespace := range labelled {
		if !slices.ContainsFunc(all, func(known *client.Object) bool { return known.GetName() == namespace.GetName() }) {
			all = append(all, namespace)
		}
	}
	if response.Err != nil && !unserved(response) {
		return all, fmt.Errorf("list the namespaces of run %s: %w", t.run, response.Err)
	}
	return all, nil
}

// emptyNamespace deletes the run's objects in a namespace that stays until none is left, because controllers may recreate objects that are
// deleted before their owners. Events are deleted last, because deletions cause some.
func (t *teardown) emptyNamespace(ctx, waiting context.Context, namespace string) error {
	run := t.run
	var left []*client.Object
	var unseen error
	held := []client.Collection{} // collections in which something was found; all are checked when it is empty
	err := wait.PollUntilContextCancel(waiting, teardownPolling, true, func(ctx context.Context) (bool, error) {
		all := len(held) == 0
		held, left, unseen = t.clearOwn(ctx, namespace, held)
		return all && unseen == nil && len(left) == 0, nil
	})
	if err == nil {
		t.clearEvents(waiting)
		return nil
	}
	looking, cancel := context.WithDeadline(ctx, t.lookEnd)
	defer cancel()
	t.clearEvents(looking)
	if left, unseen = t.ownIn(looking, namespace); len(left) > 0 {
		return fmt.Errorf("namespace %q still contains objects of run %s:%s", namespace, run, listed(left))
	}
	if unseen != nil {
		return fmt.Errorf("namespace %q may still contain objects of run %s: %w", namespace, run, unseen)
	}
	return nil
}

// clearOwn deletes the run's objects in some collections of a namespace, or in all if none are given. It returns the objects and
// collections that it found.
func (t *teardown) clearOwn(ctx context.Context, namespace string, in []client.Collection) (held []client.Collection, left []*client.Object, err error) {
	if len(in) == 0 {
		in, err = removable(t.client, namespace)
	}
	removal := t.removal
	if time.Now().After(t.unattended) {
		removal = t.withoutGarbageCollector()
	}
	held, left, failures := t.clear(ctx, in, removal)
	return held, left, errors.Join(append(failures, err, ctx.Err())...)
}

// ownIn returns the objects of the run in a namespace that stays. Objects that the credentials may not list, they could not create.
func (t *teardown) ownIn(ctx context.Context, namespace string) ([]*client.Object, error) {
	collections, err := removable(t.client, namespace)
	if err != nil {
		return nil, fmt.Errorf("discover the resources of namespace %q: %w", namespace, err)
	}
	var own []*client.Object
	var failures []error
	for _, collection := range collections {
		objects, response := t.own(ctx, collection)
		own = append(own, objects...)
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("list the %s in namespace %q: %w", collection.Resource.Resource, namespace, response.Err))
		}
	}
	return own, errors.Join(failures...)
}
