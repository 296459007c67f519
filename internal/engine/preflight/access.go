package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// roleRemedy is the remedy for missing permissions.
const roleRemedy = "grant deploy/rbac/clusterrole.yaml"

// denied returns the skip reason of missing permissions.
func denied(permissions ...string) skipReason {
	return skipReason{credentialsCheck, "missing permission: " + strings.Join(permissions, "; "), roleRemedy}
}

// checkCredentials reports the user of the credentials. The probes check permissions.
func checkCredentials(ctx context.Context, t Target) (v1alpha1.Finding, error) {
	user, err := t.Client.WhoAmI(ctx)
	return v1alpha1.Finding{Check: credentialsCheck, Severity: v1alpha1.OK, Cause: fmt.Sprintf("user %q", user)}, err
}

// mayCreate checks whether the credentials may create objects of a cluster-scoped resource.
func mayCreate(resource, group string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		return permitted(ctx, t, authorizationv1.ResourceAttributes{Verb: "create", Resource: resource, Group: group})
	}
}

// permitted fails with the skip reason when a permission is missing.
func permitted(ctx context.Context, t Target, needed authorizationv1.ResourceAttributes) error {
	allowed, err := t.Client.Allowed(ctx, needed)
	if err == nil && !allowed {
		return denied(client.Permission(needed))
	}
	return err
}

// probeDefinitions checks whether the credentials may define kinds.
func probeDefinitions(ctx context.Context, t Target) error {
	if err := t.served(fixtures.CustomResourceDefinition(client.Domain).GroupVersionKind()); err != nil {
		return err
	}
	return mayCreate(client.Definitions.Resource.Resource, client.Definitions.Resource.Group)(ctx, t)
}

// probeClasses checks whether specs may create a class of any kind. A spec that may not create the kind that it needs is skipped after the
// refusal.
func probeClasses(ctx context.Context, t Target) error {
	var missing []string
	for resource, group := range map[string]string{"priorityclasses": "scheduling.k8s.io", "volumeattributesclasses": "storage.k8s.io"} {
		create := authorizationv1.ResourceAttributes{Verb: "create", Resource: resource, Group: group}
		if allowed, err := t.Client.Allowed(ctx, create); allowed || err != nil {
			return err
		}
		missing = append(missing, client.Permission(create))
	}
	slices.Sort(missing)
	return denied(missing...)
}
