package preflight

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// roleUser is one of the users that specs impersonate, because deploy/rbac lists their names.
	roleUser = "deletion-conformance:get-configmaps"
	// rolePolling is the interval for reviewing its permissions, which cannot be watched.
	rolePolling = 20 * time.Millisecond
)

// probeRoles gives a user a Role and waits until it is effective. It never is without RBAC, or in a workspace of kcp that the user may not
// access. What the credentials may not do the specs will determine, and also what happens on a cluster that was created for the run.
func probeRoles(ctx context.Context, t Target, patience time.Duration) []skip {
	affected := t.creating("rbac.authorization.k8s.io/v1/RoleBinding")
	if len(affected) == 0 || t.NoCreate || t.createdForRun() || mayCreate("clusterroles", rbacv1.GroupName)(ctx, t) != nil {
		return nil
	}
	user := rest.ImpersonationConfig{UserName: roleUser}
	acting, err := t.Client.As(user)
	if err != nil {
		return nil
	}
	ungranted := authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: t.Namespace}
	switch allowed, err := t.Client.AllowedFor(ctx, acting, user, ungranted); {
	case err != nil:
		return nil
	case allowed:
		return notByRBAC("a user without roles may "+client.Permission(ungranted), affected)
	}
	role, binding := sampleRole(t)
	for _, object := range []*client.Object{role, binding} {
		if t.Client.Create(ctx, object).Err != nil {
			return nil
		}
		defer t.Client.Remove(context.WithoutCancel(ctx), object, t.Removal())
	}
	granted := authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: t.Namespace}
	err = wait.PollUntilContextTimeout(ctx, rolePolling, patience, true, func(context.Context) (bool, error) {
		return t.Client.AllowedFor(ctx, acting, user, granted) // with its own timeout: an interrupted review proves nothing
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return nil
	}
	return notByRBAC(fmt.Sprintf("a new Role had no effect within %s", patience), affected)
}

// notByRBAC returns the skip of behaviors where other authorizers decide than RBAC.
func notByRBAC(sign string, behaviors []string) []skip {
	return []skip{{skipReason: skipReason{check: credentialsCheck, text: client.NotByRBAC + sign}, behaviors: behaviors}}
}

// sampleRole returns a Role to get ConfigMaps, and its binding to the user.
func sampleRole(t Target) (role, binding *client.Object) {
	object := func(kind string, content map[string]any) *client.Object {
		made := &client.Object{Object: content}
		made.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		made.SetName("sample")
		t.place(made)
		return made
	}
	role = object("Role", map[string]any{"rules": []any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}},
	}})
	return role, object("RoleBinding", map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": role.GetName()},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": roleUser}},
	})
}
