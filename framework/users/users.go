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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

const (
	// roleEffective bounds how long the API server may take to learn of a Role and its RoleBinding.
	roleEffective = 10 * time.Second
	// rolePolling is how often it is asked what the user may do; that cannot be watched.
	rolePolling = 20 * time.Millisecond
)

// May is a rule of a Role: verbs on a resource of the core group, or on a subresource of one ("pods/eviction").
func May(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

// As is the cluster as a user of the spec's own sees it, who may do in the spec's namespace what a Role of these rules
// allows, and nothing else. What the user is refused is a response like any other. The spec is skipped where the credentials
// do not allow to impersonate and to bind, and where Roles decide nothing.
func As(ctx context.Context, c *framework.Cluster, name string, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	return permitted(ctx, c, name, rest.ImpersonationConfig{UserName: framework.Domain + ":" + c.Session().Run + "-" + c.Labels()[client.SpecLabel] + ":" + name}, rules)
}

// AsNode is As, as the kubelet of a node that need not exist, who may also do what every node may.
func AsNode(ctx context.Context, c *framework.Cluster, node string, rules ...rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	return permitted(ctx, c, node, rest.ImpersonationConfig{UserName: Node(node), Groups: []string{"system:nodes"}}, rules)
}

// Node is the user that the kubelet of a node is to the API server.
func Node(node string) string { return "system:node:" + node }

// plainRules are rules as they are, but those on ConfigMaps on what stands in for these. The spec is skipped where that is
// cluster-scoped: no Role is about it.
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
			ginkgo.Skip(fmt.Sprintf("%s are cluster-scoped, and the Role of a namespace is not about those", plain))
		}
		rules[i].APIGroups, rules[i].Resources = []string{plain.Group}, []string{plain.Resource}
		if has {
			rules[i].Resources[0] += "/" + subresource
		}
	}
	return rules
}

// permitted is the cluster as a user sees it whom a Role of these rules is given.
func permitted(ctx context.Context, c *framework.Cluster, name string, user rest.ImpersonationConfig, rules []rbacv1.PolicyRule) *framework.Cluster {
	ginkgo.GinkgoHelper()
	rules = plainRules(ctx, c, rules)
	as := c.As(ctx, user.UserName, user.Groups...)
	impersonating, err := c.Session().Harness.As(user)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	mustGoByRoles(ctx, c, impersonating)
	meta := metav1.ObjectMeta{Name: name}
	grant(ctx, c, &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: meta, Rules: rules})
	grant(ctx, c, &rbacv1.RoleBinding{
		TypeMeta: rbac("RoleBinding"), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.FreeName(name)},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.UserName}},
	})
	awaitRules(ctx, c, impersonating, rules)
	return as
}

// mustGoByRoles skips the spec where the API server allows a user what no Role does, and no rule for nodes either.
func mustGoByRoles(ctx context.Context, c *framework.Cluster, user *client.Client) {
	ginkgo.GinkgoHelper()
	ungranted := authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: c.Namespace()}
	switch allowed, err := user.Allowed(ctx, ungranted); {
	case err != nil:
		c.Check(ctx, framework.Response{Request: "ask what a user may do", Err: err})
	case allowed:
		ginkgo.Skip("the cluster does not follow Roles: a user without any may " + client.Permission(ungranted))
	}
}

func rbac(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// grant creates a Role or its binding, and skips the spec where the credentials do not suffice: nobody may give what they
// do not have.
func grant(ctx context.Context, c *framework.Cluster, object any) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		ginkgo.Fail(fmt.Sprintf("encode a %T: %v", object, err))
	}
	response := c.TryCreate(ctx, &framework.Object{Object: content})
	if response.StatusCode == http.StatusForbidden {
		ginkgo.Skip("the credentials do not allow to give another user permissions: " + response.Message())
	}
	framework.Require(response)
}

// awaitRules waits until the API server allows a user what rules say.
func awaitRules(ctx context.Context, c *framework.Cluster, user *client.Client, rules []rbacv1.PolicyRule) {
	ginkgo.GinkgoHelper()
	for _, rule := range rules {
		needed := authorizationv1.ResourceAttributes{
			Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0], Namespace: c.Namespace(),
		}
		needed.Resource, needed.Subresource, _ = strings.Cut(needed.Resource, "/")
		patience := c.Session().Slowed(roleEffective)
		err := wait.PollUntilContextTimeout(ctx, rolePolling, patience, true, func(context.Context) (bool, error) {
			return user.Allowed(ctx, needed) // in its own time: one that is cut off says nothing
		})
		switch {
		case wait.Interrupted(err) && ctx.Err() == nil:
			ginkgo.Skip(fmt.Sprintf("the cluster does not follow Roles (within %s)", patience))
		case err != nil:
			c.Check(ctx, framework.Response{Request: "ask what a user may do", Err: err})
		}
	}
}

// WhoAmI is the user that the API server takes the spec's requests for.
func WhoAmI(ctx context.Context, c *framework.Cluster) string {
	ginkgo.GinkgoHelper()
	user, err := c.Session().Harness.WhoAmI(ctx)
	if err != nil {
		c.Check(ctx, framework.Response{Request: "ask who the requests come from", Err: err})
	}
	return user
}
