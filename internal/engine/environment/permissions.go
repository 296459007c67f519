package environment

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

// missingPermissions returns the permissions that the credentials lack, with the behaviors that need them. It is empty when they cannot be
// checked, and sends one request if all is permitted.
func (e *Environment) missingPermissions(ctx context.Context) []obstacle {
	all := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	if allowed, err := e.client.Allowed(ctx, all); allowed || err != nil {
		return nil
	}
	blocks := e.mayNotBlock(ctx)
	needs := map[authorizationv1.ResourceAttributes][]string{}
	for _, id := range e.behaviorIDs(nil) {
		for _, needed := range e.permissionsOf(readFixtures()[id], blocks) {
			needs[needed] = append(needs[needed], id)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(needs), func(a, b authorizationv1.ResourceAttributes) int {
		return strings.Compare(client.Permission(a), client.Permission(b))
	})
	found := make([]obstacle, len(sorted))
	crash.InParallel(probesAtOnce, len(sorted), func(i int) {
		if allowed, err := e.client.Allowed(ctx, sorted[i]); err == nil && !allowed {
			by := denied(client.Permission(sorted[i]))
			found[i] = obstacle{check: by.check, cause: by.cause, remedy: by.remedy, behaviors: needs[sorted[i]], announced: true}
		}
	})
	return found
}

// permissionsOf returns the permissions that a behavior needs, and those to block owners where they are required.
func (e *Environment) permissionsOf(use FixtureUse, blocks bool) []authorizationv1.ResourceAttributes {
	var needed []authorizationv1.ResourceAttributes
	for _, text := range use.Permissions {
		needed = append(needed, e.parsePermission(text))
	}
	add := func(verb, subresource string, kinds []string) {
		for _, kind := range kinds {
			like := &client.Object{Object: map[string]any{}}
			like.SetGroupVersionKind(kindOf(kind))
			like.SetNamespace(e.namespaceOf(1))
			if collection, err := e.client.CollectionOf(e.client.StandInFor(like)); err == nil {
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
func (e *Environment) parsePermission(text string) authorizationv1.ResourceAttributes {
	needed := authorizationv1.ResourceAttributes{Namespace: e.namespaceOf(1)}
	if rest, ok := strings.CutSuffix(text, everywhere); ok {
		text, needed.Namespace = rest, ""
	}
	needed.Verb, text, _ = strings.Cut(text, " ")
	text, needed.Group, _ = strings.Cut(text, ".")
	needed.Resource, needed.Subresource, _ = strings.Cut(text, "/")
	return needed
}

// mayNotBlock reports whether the server refuses a reference with blockOwnerDeletion to owners whose finalizers the credentials may not update.
// The admission plugin OwnerReferencesPermissionEnforcement does, which not every server has.
func (e *Environment) mayNotBlock(ctx context.Context) bool {
	sample := e.client.StandInFor(fixtures.ConfigMap("sample"))
	e.complete(sample, true)
	kind := sample.GroupVersionKind()
	sample.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: "owner", UID: types.UID(e.options.Run), BlockOwnerDeletion: new(true),
	}})
	return apierrors.IsForbidden(e.client.DryRunCreate(ctx, sample).Err)
}
