package environment

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
func (e *Environment) probeRoles(ctx context.Context, patience time.Duration) []obstacle {
	affected := creating("rbac.authorization.k8s.io/v1/RoleBinding", e.behaviorIDs(nil))
	if len(affected) == 0 || e.CreatesNothing() || e.createdForRun() || e.probePermission("clusterroles", rbacv1.GroupName)(ctx) != nil {
		return nil
	}
	user := rest.ImpersonationConfig{UserName: roleUser}
	acting, err := e.client.As(user)
	if err != nil {
		return nil
	}
	ungranted := authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: e.namespaceOf(1)}
	switch allowed, err := e.client.AllowedFor(ctx, acting, user, ungranted); {
	case err != nil:
		return nil
	case allowed:
		return []obstacle{{check: credentialsCheck, cause: client.NotByRBAC + "a user without roles may " + client.Permission(ungranted), behaviors: affected}}
	}
	role, binding := e.sampleRole()
	for _, object := range []*client.Object{role, binding} {
		if e.client.Create(ctx, object).Err != nil {
			return nil
		}
		defer e.client.Remove(context.WithoutCancel(ctx), object, e.removal())
	}
	granted := authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: e.namespaceOf(1)}
	err = wait.PollUntilContextTimeout(ctx, rolePolling, patience, true, func(context.Context) (bool, error) {
		return e.client.AllowedFor(ctx, acting, user, granted) // with its own timeout: an interrupted review proves nothing
	})
	if !wait.Interrupted(err) || ctx.Err() != nil {
		return nil
	}
	return []obstacle{{check: credentialsCheck, cause: fmt.Sprintf("%sa new Role had no effect within %s", client.NotByRBAC, patience), behaviors: affected}}
}

// sampleRole returns a Role to get ConfigMaps, and its binding to the user.
func (e *Environment) sampleRole() (role, binding *client.Object) {
	object := func(kind string, content map[string]any) *client.Object {
		made := &client.Object{Object: content}
		made.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		made.SetName("sample")
		e.complete(made, true)
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
