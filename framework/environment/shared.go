package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// A run may be told to stay in a namespace that is not its own (--namespace). All its workers then share that namespace, it
// makes nothing outside, and at its end it removes what carries its label and leaves the namespace standing.

// staysInside says that the run was told to stay in a namespace.
func (e *Environment) staysInside() bool { return e.options.SharedNamespace != "" }

// moveIn has every worker use the namespace that the run was told to stay in.
func (e *Environment) moveIn(ctx context.Context) error {
	namespace := fixtures.Namespace(e.options.SharedNamespace)
	create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace.GetName()}
	switch allowed, err := e.client.Allowed(ctx, create); {
	case err != nil:
		return err
	case !allowed:
		return fmt.Errorf("the credentials do not allow to %s", client.Permission(create))
	}
	for _, need := range []struct {
		v1alpha1.Need
		resource string
	}{
		{v1alpha1.CRD, "customresourcedefinitions.apiextensions.k8s.io"}, {v1alpha1.Admin, "cluster-scoped objects"},
		{v1alpha1.Hook, "validatingwebhookconfigurations.admissionregistration.k8s.io"},
	} {
		e.unsupported[need.Need] = e.Session(0).Outside("create " + need.resource)
	}
	e.namespaces = slices.Repeat([]*client.Object{namespace}, max(e.options.Workers, 1))
	return e.furnish(ctx, namespace, 1)
}

// moveOut removes what the run made in the namespace that it shared, until nothing is left: controllers may make anew what is
// removed before its owner.
func (e *Environment) moveOut(ctx context.Context) error {
	var left []string
	var unseen error
	err := wait.PollUntilContextCancel(ctx, teardownPolling, true, func(ctx context.Context) (bool, error) {
		left, unseen = clearOwn(ctx, e.client, e.options.SharedNamespace, e.options.Run)
		return unseen == nil && len(left) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case len(left) > 0:
		return errors.Join(fmt.Errorf("namespace %q still holds of run %s: %s", e.options.SharedNamespace, e.options.Run, strings.Join(left, ", ")), unseen)
	}
	return fmt.Errorf("namespace %q may still hold something of run %s: %w", e.options.SharedNamespace, e.options.Run, unseen)
}

// clearOwn removes what is there of a run in a namespace, and names it. What the credentials do not allow to look at, they did
// not allow to make.
func clearOwn(ctx context.Context, with *client.Client, namespace, run string) ([]string, error) {
	var found []string
	err := eachOwn(ctx, with, namespace, client.RunLabel+"="+run, func(collection client.Collection, objects []*client.Object) {
		for _, object := range objects {
			found = append(found, client.Title(object))
		}
		_ = with.RemoveEach(ctx, collection, client.RunLabel+"="+run) // what stays is found the next time
	})
	return found, err
}

// eachOwn goes through what a label selector matches in a namespace, kind by kind.
func eachOwn(ctx context.Context, with *client.Client, namespace, selector string, do func(client.Collection, []*client.Object)) error {
	collections, err := with.Removable(namespace)
	if err != nil {
		return fmt.Errorf("find what namespace %q may hold: %w", namespace, err)
	}
	var failures []error
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		objects, response := with.List(ctx, collection, selector)
		switch {
		case response.Err != nil && !unserved(response):
			failures = append(failures, fmt.Errorf("list the %s in namespace %q: %w", collection.Resource.Resource, namespace, response.Err))
		case len(objects) > 0:
			do(collection, objects)
		}
	}
	return errors.Join(failures...)
}

// LeftoversIn finds the runs that have something in a namespace that they were told to stay in. It fails with ErrUnreachable,
// or when the namespace cannot be looked through.
func LeftoversIn(ctx context.Context, config *rest.Config, namespace string) ([]Leftover, error) {
	connected, err := client.New(config)
	if err != nil {
		return nil, err
	}
	if _, err := serverVersion(ctx, connected); err != nil {
		return nil, unreachable(config, err)
	}
	var leftovers []Leftover
	err = eachOwn(ctx, connected, namespace, client.RunLabel, func(_ client.Collection, objects []*client.Object) {
		for _, object := range objects {
			run := object.GetLabels()[client.RunLabel]
			at := slices.IndexFunc(leftovers, func(leftover Leftover) bool { return leftover.Run == run })
			if at < 0 {
				at, leftovers = len(leftovers), append(leftovers, Leftover{Run: run, shared: namespace})
			}
			if object.GetKind() == "Lease" && object.GetName() == leaseName {
				leftovers[at].note(object)
			}
		}
	})
	return leftovers, err
}
