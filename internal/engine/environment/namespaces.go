package environment

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ErrNoNamespace means that the namespace to use does not exist.
var ErrNoNamespace = client.ErrNoNamespace

// namespaceRemedy is the remedy when the credentials do not permit creating namespaces or using the named one.
const namespaceRemedy = "name a namespace of yours with --namespace NAME, or grant a role of deploy/rbac"

// missingIn returns the error for a missing permission in a namespace.
func missingIn(permission authorizationv1.ResourceAttributes) error {
	return fmt.Errorf("missing permission: %s; %s", client.Permission(permission), namespaceRemedy)
}

// findNamespace fails with ErrNoNamespace where a namespace does not exist. Credentials that may not get it may still use it.
func findNamespace(ctx context.Context, with *client.Client, name string) error {
	if response := with.Get(ctx, fixtures.Namespace(name)); apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("namespace %q %w", name, ErrNoNamespace)
	}
	return nil
}

// mayUse fails when the credentials may not create objects in a namespace that the run was given, or when it does not exist.
func mayUse(ctx context.Context, with *client.Client, namespace string) error {
	if err := findNamespace(ctx, with, namespace); err != nil {
		return err
	}
	create := creating(namespace)
	allowed, err := with.Allowed(ctx, create)
	if err == nil && !allowed {
		return missingIn(create)
	}
	return err
}

// creating is the permission that every run needs in its namespaces.
func creating(namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: namespace}
}

// admitted limits how long the creator of a namespace may have to wait for permissions in it, because self-service platforms grant them
// after the namespace was created.
const admitted = 30 * time.Second

// createNamespace creates a worker's namespace and waits until the credentials may create objects in it.
func createNamespace(ctx context.Context, with *client.Client, name string, labels map[string]string) (*client.Object, error) {
	namespace := fixtures.Namespace(name)
	namespace.SetLabels(labels)
	response := with.Create(ctx, namespace)
	if apierrors.IsForbidden(response.Err) {
		return nil, fmt.Errorf("create namespace %q: %w; %s", name, response.Err, namespaceRemedy)
	}
	if response.Err != nil {
		return nil, fmt.Errorf("create namespace %q: %w", name, response.Err)
	}
	create := creating(name)
	if allowed, err := with.Allowed(ctx, create); err == nil && !allowed {
		if err := bindInside(ctx, with, name); err != nil {
			return response.Object, err
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, admitted, true, func(context.Context) (bool, error) {
		return with.Allowed(ctx, create) // with its own timeout: a slow server is not a refusal
	})
	if wait.Interrupted(err) {
		return response.Object, missingIn(create)
	}
	return response.Object, err
}

// insideRole is the role of deploy/rbac for the inside of the run's namespaces.
const insideRole = "deletion-conformance-inside"

// bindInside binds this role to the credentials in a worker's namespace, if they may. It does not in the namespaces of specs: the namespace
// controller may delete a binding before the run has removed its finalizers there.
func bindInside(ctx context.Context, with *client.Client, namespace string) error {
	bind := authorizationv1.ResourceAttributes{
		Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: insideRole, Namespace: namespace,
	}
	if allowed, err := with.Allowed(ctx, bind); err != nil || !allowed {
		return err
	}
	user, err := with.WhoAmI(ctx)
	if err != nil {
		return err
	}
	response := with.Create(ctx, &client.Object{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding",
		"metadata": map[string]any{"name": insideRole, "namespace": namespace},
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": insideRole},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}},
	}})
	if response.Err != nil {
		return fmt.Errorf("bind the ClusterRole %s in namespace %q: %w", insideRole, namespace, response.Err)
	}
	return nil
}
