package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// emptySharedNamespace deletes the run's objects in the namespace until none is left, because controllers may recreate objects that are
// deleted before their owners. Events are deleted last, because deletions cause some.
func (t *teardown) emptySharedNamespace(ctx, waiting context.Context) error {
	namespace, run := t.shared, t.run
	var left []*client.Object
	var unseen error
	held := []client.Collection{} // collections in which something was found; all are checked when it is empty
	err := wait.PollUntilContextCancel(waiting, teardownPolling, true, func(ctx context.Context) (bool, error) {
		all := len(held) == 0
		held, left, unseen = t.clearOwn(ctx, held)
		return all && unseen == nil && len(left) == 0, nil
	})
	if err == nil {
		t.clearEvents(waiting)
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, lookingBack)
	defer cancel()
	t.clearEvents(looking)
	if left, unseen = t.ownIn(looking); len(left) > 0 {
		return fmt.Errorf("namespace %q still contains objects of run %s:%s", namespace, run, listed(left))
	}
	if unseen != nil {
		return fmt.Errorf("namespace %q may still contain objects of run %s: %w", namespace, run, unseen)
	}
	return nil
}

// clearOwn deletes the run's objects in some collections of the namespace, or in all if none are given. It returns the objects and
// collections that it found.
func (t *teardown) clearOwn(ctx context.Context, in []client.Collection) (held []client.Collection, left []*client.Object, err error) {
	if len(in) == 0 {
		in, err = removable(t.client, t.shared)
	}
	how := t.how
	if time.Now().After(t.unattended) {
		how = t.withoutGarbageCollector()
	}
	held, left, failures := t.clear(ctx, in, how)
	return held, left, errors.Join(append(failures, err, ctx.Err())...)
}

// ownIn returns the objects of the run in the shared namespace. Objects that the credentials may not list, they could not create.
func (t *teardown) ownIn(ctx context.Context) ([]*client.Object, error) {
	collections, err := removable(t.client, t.shared)
	if err != nil {
		return nil, fmt.Errorf("discover the resources of namespace %q: %w", t.shared, err)
	}
	var own []*client.Object
	var failures []error
	for _, collection := range collections {
		objects, response := t.own(ctx, collection)
		own = append(own, objects...)
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("list the %s in namespace %q: %w", collection.Resource.Resource, t.shared, response.Err))
		}
	}
	return own, errors.Join(failures...)
}
