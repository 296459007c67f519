package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// A run with --namespace uses one existing namespace for all workers, and creates nothing outside it. Its teardown deletes the objects with
// its label and keeps the namespace.

// inSharedNamespace reports whether the run uses an existing namespace.
func (e *Environment) inSharedNamespace() bool { return e.options.SharedNamespace != "" }

// ErrNoNamespace means that the namespace to use does not exist.
var ErrNoNamespace = client.ErrNoNamespace

// namespaceRemedy is the remedy when the credentials do not permit creating namespaces or using the named one.
const namespaceRemedy = "name a namespace of yours with --namespace NAME, or grant a role of deploy/rbac"

// missingIn returns the error for a missing permission in a namespace.
func missingIn(lacking authorizationv1.ResourceAttributes) error {
	return fmt.Errorf("missing permission: %s; %s", client.Permission(lacking), namespaceRemedy)
}

// findNamespace fails with ErrNoNamespace where a namespace does not exist. Credentials that may not get it may still use it.
func findNamespace(ctx context.Context, with *client.Client, name string) error {
	if response := with.Get(ctx, fixtures.Namespace(name)); apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("namespace %q %w", name, ErrNoNamespace)
	}
	return nil
}

// useSharedNamespace makes all workers use the existing namespace.
func (e *Environment) useSharedNamespace(ctx context.Context) error {
	namespace := fixtures.Namespace(e.options.SharedNamespace)
	if err := findNamespace(ctx, e.client, namespace.GetName()); err != nil {
		return err
	}
	create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace.GetName()}
	switch allowed, err := e.client.Allowed(ctx, create); {
	case err != nil:
		return err
	case !allowed:
		return missingIn(create)
	}
	for _, need := range []struct {
		v1alpha1.Feature
		resource string
	}{
		{v1alpha1.CRD, "customresourcedefinitions.apiextensions.k8s.io"}, {v1alpha1.Admin, "cluster-scoped objects"},
		{v1alpha1.Namespace, "namespaces"}, {v1alpha1.Volume, "persistentvolumes"}, {v1alpha1.Class, "priorityclasses and volumeattributesclasses"},
		{v1alpha1.SimulatedNode, "nodes"}, {v1alpha1.Hook, "validatingwebhookconfigurations.admissionregistration.k8s.io"},
	} {
		e.unsupported[need.Feature] = e.Session(0).Outside("create " + need.resource)
	}
	e.namespaces = []*client.Object{namespace}
	return e.furnish(ctx, namespace, 1)
}

// emptySharedNamespace deletes the run's objects in the namespace until none is left, because controllers may recreate objects that are
// deleted before their owners. Events are deleted last, because deletions cause some.
func (t *teardown) emptySharedNamespace(ctx, waiting context.Context) error {
	namespace, run := t.options.SharedNamespace, t.options.Run
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
		in, err = t.with.Removable(t.options.SharedNamespace)
	}
	how := t.how
	if time.Now().After(t.unattended) {
		how = t.withoutGarbageCollector()
	}
	failures := []error{err}
	for _, collection := range slices.SortedFunc(slices.Values(in), inOrder) {
		found, response := t.with.RemoveEach(ctx, collection, client.RunLabel+"="+t.options.Run, how)
		if len(found) > 0 {
			held, left = append(held, collection), append(left, found...)
		}
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("delete the %s of run %s: %w", collection.Resource.Resource, t.options.Run, response.Err))
		}
	}
	return held, left, errors.Join(failures...)
}

// ownIn returns the objects of the run in the shared namespace. Objects that the credentials may not list, they could not create.
func (t *teardown) ownIn(ctx context.Context) ([]*client.Object, error) {
	collections, err := t.with.Removable(t.options.SharedNamespace)
	if err != nil {
		return nil, fmt.Errorf("discover the resources of namespace %q: %w", t.options.SharedNamespace, err)
	}
	var own []*client.Object
	var failures []error
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		objects, response := t.with.List(ctx, collection, client.RunLabel+"="+t.options.Run)
		own = append(own, slices.DeleteFunc(objects, t.foreign(collection))...)
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("list the %s in namespace %q: %w", collection.Resource.Resource, t.options.SharedNamespace, response.Err))
		}
	}
	return own, errors.Join(failures...)
}
