package environment

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
