package users

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

const (
	// roleEffective limits how long the API server may take to apply a Role and its RoleBinding.
	roleEffective = 10 * time.Second
	// rolePolling is the interval for reviewing a user's permissions, which cannot be watched.
	rolePolling = 20 * time.Millisecond
)

// May returns a rule of a Role: verbs on a resource of the core group, or on a subresource ("pods/eviction").
func May(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

// As returns the cluster as a user sees it who has only the permissions of these rules in the spec's namespace. Refusals are returned as
// responses. The spec is skipped when the credentials may not impersonate and bind, and when Roles do not decide.
func As(ctx context.Context, c *framework.Cluster, name string, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	return AsUser(ctx, c, name, Name(rules...), rules...)
}

// AsUser is As, as a user by the name that the API server knows.
func AsUser(ctx context.Context, c *framework.Cluster, name, user string, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	return permitted(ctx, c, name, rest.ImpersonationConfig{UserName: user}, rules)
}

// Name is the user that As makes of rules. The names are fixed, so that deploy/rbac can list them, and specs of other workers and of other runs
// use them at the same time. They do not disturb each other: no ClusterRoleBinding names a user, RoleBindings are in the namespace of a
// worker, and those that the worker's previous spec left grant the same rules, which the name contains.
func Name(rules ...rbacv1.PolicyRule) string {
	var parts []string
	for _, rule := range rules {
		parts = append(parts, strings.Join(append(slices.Clone(rule.Verbs), rule.Resources...), "-"))
	}
	return "deletion-conformance:" + strings.Join(parts, "+")
}

// OnBehalfOf is the cluster as a ServiceAccount of the spec's own sees it that impersonates another user, by its own credentials, and
// that may do in the spec's namespace what a Role of these rules allows, and nothing else.
func OnBehalfOf(ctx context.Context, c *framework.Cluster, name, user string, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	account := c.Create(ctx, fixtures.ServiceAccount(), framework.Named(c.FreeName(name)))
	token := RequestTokens(ctx, c, account, account).stock[0]()
	authenticated, err := c.Session().Harness.WithToken(token, rest.ImpersonationConfig{})
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	username := AccountName(account.GetNamespace(), account.GetName())
	mustAuthenticate(ctx, authenticated, username)
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + account.GetNamespace()}
	permit(ctx, c, name, subject{authenticated, rest.ImpersonationConfig{UserName: username, Groups: groups}}, plainRules(ctx, c, rules))
	return c.WithToken(token, user)
}

// mustAuthenticate skips the spec when the API server takes requests with a token for those of another user, because a proxy in between adds
// its own credentials, as `kubectl proxy` does.
func mustAuthenticate(ctx context.Context, authenticated *client.Client, user string) {
	ginkgo.GinkgoHelper()
	if actual, err := authenticated.WhoAmI(ctx); err == nil && actual != user {
		ginkgo.Skip("a proxy adds its own credentials: with the token of " + user + ", the user is " + actual)
	}
}

// AccountName is the user that a ServiceAccount is to the API server.
func AccountName(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// OwnNode is the node that AsNode acts for. It does not exist, and its name is fixed for the same reason as those of users.
const OwnNode = "deletion-conformance-node"

// AsNode is As for the kubelet of OwnNode. It also has the permissions of every node.
func AsNode(ctx context.Context, c *framework.Cluster, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	return permitted(ctx, c, OwnNode, rest.ImpersonationConfig{UserName: Node(OwnNode), Groups: []string{"system:nodes"}}, rules)
}

// Node returns the username of a node's kubelet.
func Node(node string) string { return "system:node:" + node }

// plainRules replaces ConfigMaps in rules by the resource under test. The spec is skipped when that is cluster-scoped, because a Role does
// not apply.
func plainRules(ctx context.Context, c *framework.Cluster, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	ginkgo.GinkgoHelper()
	collection := c.CollectionOf(ctx, c.Prepare(ctx, fixtures.ConfigMap("plain")))
	plain := collection.Resource.GroupResource()
	rules = slices.Clone(rules)
	for i, rule := range rules {
		resource, subresource, has := strings.Cut(rule.Resources[0], "/")
		if rule.APIGroups[0] != "" || resource != "configmaps" || plain == corev1.Resource(resource) {
			continue
		}
		if collection.Namespace == "" {
			ginkgo.Skip(fmt.Sprintf("%s are cluster-scoped, and a Role does not apply to cluster-scoped resources", plain))
		}
		rules[i].APIGroups, rules[i].Resources = []string{plain.Group}, []string{plain.Resource}
		if has {
			rules[i].Resources[0] += "/" + subresource
		}
	}
	return rules
}

// permitted returns the cluster as a user sees it who has a Role with these rules.
func permitted(ctx context.Context, c *framework.Cluster, name string, user rest.ImpersonationConfig, rules []rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	rules = plainRules(ctx, c, rules)
	as := c.As(ctx, user.UserName, user.Groups...)
	impersonating, err := c.Session().Harness.As(user)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	permit(ctx, c, name, subject{impersonating, user}, rules)
	return as
}

// subject is a user whose permissions are checked.
type subject struct {
	// acting is a client that acts as the user.
	acting *client.Client
	rest.ImpersonationConfig
}

// allowed checks a permission of the user.
func (s subject) allowed(ctx context.Context, c *framework.Cluster, permission authorizationv1.ResourceAttributes) (bool, error) {
	return c.Session().Harness.AllowedFor(ctx, s.acting, s.ImpersonationConfig, permission)
}

// check ends the spec after a review that failed: as skipped when neither the user nor the run may create it.
func (s subject) check(ctx context.Context, c *framework.Cluster, err error) {
	ginkgo.GinkgoHelper()
	if apierrors.IsForbidden(err) {
		ginkgo.Skip("missing permission: create subjectaccessreviews.authorization.k8s.io, which is needed where users may not review their own access")
	}
	c.Check(ctx, framework.Response{Request: "check the permissions of a user", Err: err})
}

// permit gives a user a Role with these rules, and waits until it is effective.
func permit(ctx context.Context, c *framework.Cluster, name string, user subject, rules []rbacv1.PolicyRule) {
	ginkgo.GinkgoHelper()
	mustEnforceRBAC(ctx, c, user)
	if user.UserName != Node(OwnNode) { // a node has permissions that no Role grants
		await(ctx, c, user, rules, withdrawn)
	}
	meta := metav1.ObjectMeta{Name: name}
	grant(ctx, c, &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: meta, Rules: rules})
	grant(ctx, c, &rbacv1.RoleBinding{
		TypeMeta: rbac("RoleBinding"), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.FreeName(name)},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.UserName}},
	})
	await(ctx, c, user, rules, granted)
}

// mustEnforceRBAC skips the spec when the API server permits a user something that no Role and no rule for nodes grants.
func mustEnforceRBAC(ctx context.Context, c *framework.Cluster, user subject) {
	ginkgo.GinkgoHelper()
	ungranted := authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: c.Namespace()}
	switch allowed, err := user.allowed(ctx, c, ungranted); {
	case err != nil:
		user.check(ctx, c, err)
	case allowed:
		ginkgo.Skip(client.NotByRBAC + "a user without roles may " + client.Permission(ungranted))
	}
}

func rbac(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// grant creates a Role or its binding. It skips the spec when the credentials may not, because users may not grant permissions that they do
// not have.
func grant(ctx context.Context, c *framework.Cluster, object any) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode a %T: %v", object, err))
	}
	response := c.TryCreate(ctx, &framework.Object{Object: content})
	if response.StatusCode == http.StatusForbidden {
		ginkgo.Skip("missing permission: grant permissions to another user: " + response.Message())
	}
	framework.Require(response)
}

// effect is what the API server makes of a Role after some time.
type effect struct {
	allowed bool
	// missing is what shows that Roles do not decide when the effect does not come.
	missing string
}

var (
	granted = effect{true, "a new Role had no effect"}
	// withdrawn is the effect of deleting the RoleBinding of an earlier spec. Without it, the permissions of a new one could end in between.
	withdrawn = effect{false, "a user without a Role kept permissions"}
)

// await waits until the permissions of rules are granted to a user, or withdrawn.
func await(ctx context.Context, c *framework.Cluster, user subject, rules []rbacv1.PolicyRule, effect effect) {
	ginkgo.GinkgoHelper()
	for _, rule := range rules {
		needed := authorizationv1.ResourceAttributes{
			Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: c.Namespace(),
		}
		needed.Resource, needed.Subresource, _ = strings.Cut(needed.Resource, "/")
		if len(rule.ResourceNames) > 0 {
			needed.Name = rule.ResourceNames[0]
		}
		patience := c.Session().Slowed(roleEffective)
		err := wait.PollUntilContextTimeout(ctx, rolePolling, patience, true, func(context.Context) (bool, error) {
			allowed, err := user.allowed(ctx, c, needed) // with its own timeout: an interrupted review proves nothing
			return allowed == effect.allowed, err
		})
		switch {
		case wait.Interrupted(err) && ctx.Err() == nil:
			ginkgo.Skip(fmt.Sprintf("%s%s within %s", client.NotByRBAC, effect.missing, patience))
		case err != nil:
			user.check(ctx, c, err)
		}
	}
}

// WhoAmI returns the username that the API server derives from the spec's credentials.
func WhoAmI(ctx context.Context, c *framework.Cluster) string {
	ginkgo.GinkgoHelper()
	user, err := c.Session().Harness.WhoAmI(ctx)
	if err != nil {
		c.Check(ctx, framework.Response{Request: "read the user of the credentials", Err: err})
	}
	return user
}
