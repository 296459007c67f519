package preflight

import (
	"context"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// A behavior skips itself when a permission is missing for one of its requests. The table of fixtures contains these permissions, so that
// preflight announces the skips.

// everywhere marks permissions of the table that are not only needed in the namespace of the spec.
const everywhere = " everywhere"

// maxParallelProbes is the number of kinds and permissions that are probed in parallel.
const maxParallelProbes = 8

// missingPermissions returns the permissions that the credentials lack, with the behaviors that need them. It is empty when they cannot be
// checked, and sends one request if all is permitted.
func missingPermissions(ctx context.Context, t Target) []skip {
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := t.Client.Allowed(ctx, all); allowed || err != nil {
		return nil
	}
	blocks := forbidsBlocking(ctx, t)
	required := map[authorizationv1.ResourceAttributes][]string{}
	for _, id := range t.behaviors() {
		for _, needed := range permissionsOf(t, readFixtures()[id], blocks) {
			required[needed] = append(required[needed], id)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(required), func(a, b authorizationv1.ResourceAttributes) int {
		return strings.Compare(client.Permission(a), client.Permission(b))
	})
	found := make([]skip, len(sorted))
	crash.InParallel(maxParallelProbes, len(sorted), func(i int) {
		if allowed, err := t.Client.Allowed(ctx, sorted[i]); err == nil && !allowed {
			found[i] = skip{denied(client.Permission(sorted[i])), required[sorted[i]], true}
		}
	})
	return found
}

// permissionsOf returns the permissions that a behavior required, and those to block owners where they are required.
func permissionsOf(t Target, use FixtureUse, blocks bool) []authorizationv1.ResourceAttributes {
	var needed []authorizationv1.ResourceAttributes
	for _, text := range use.Permissions {
		needed = append(needed, parsePermission(text, t.Namespace))
	}
	add := func(verb, subresource string, kinds []string) {
		for _, kind := range kinds {
			like := &client.Object{Object: map[string]any{}}
			like.SetGroupVersionKind(kindOf(kind))
			like.SetNamespace(t.Namespace)
			if collection, err := t.Client.CollectionOf(t.Client.StandInFor(like)); err == nil {
				needed = append(needed, authorizationv1.ResourceAttributes{
					Verb: verb, Group: collection.Resource.Group, Resource: collection.Resource.Resource, Subresource: subresource, Namespace: collection.Namespace,
				})
			}
		}
	}
	add("create", "", use.Creates)
	if blocks {
		add("update", "finalizers", use.Blocks)
	}
	return needed
}

// parsePermission reads a permission of the table: patch pods/status, or list cronjobs.batch everywhere.
func parsePermission(text, namespace string) authorizationv1.ResourceAttributes {
	needed := authorizationv1.ResourceAttributes{Namespace: namespace}
	if rest, ok := strings.CutSuffix(text, everywhere); ok {
		text, needed.Namespace = rest, ""
	}
	needed.Verb, text, _ = strings.Cut(text, " ")
	text, needed.Group, _ = strings.Cut(text, ".")
	needed.Resource, needed.Subresource, _ = strings.Cut(text, "/")
	return needed
}

// forbidsBlocking reports whether the server refuses a reference with blockOwnerDeletion to owners whose finalizers the credentials may not update.
// The admission plugin OwnerReferencesPermissionEnforcement does, which not every server has.
func forbidsBlocking(ctx context.Context, t Target) bool {
	sample := t.Client.StandInFor(fixtures.ConfigMap("sample"))
	t.place(sample)
	kind := sample.GroupVersionKind()
	sample.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "owner", UID: types.UID(t.Run), BlockOwnerDeletion: new(true),
	}})
	return apierrors.IsForbidden(t.Client.DryRunCreate(ctx, sample).Err)
}
