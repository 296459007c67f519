package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// permission is one verb on one resource, as in RBAC, or on the object of one name.
type permission struct{ group, resource, verb, name string }

func (p permission) String() string {
	return strings.TrimSpace(strings.TrimSuffix(p.verb+" "+p.resource+"."+p.group, ".") + " " + p.name)
}

// rules returns the rules of the roles in a file of deploy/rbac, by the role's name.
func rules(t *testing.T, file string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	content, err := os.Open(filepath.Join("..", "..", "deploy", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	found := map[string][]rbacv1.PolicyRule{}
	documents := yaml.NewYAMLOrJSONDecoder(content, 4096)
	for {
		role := rbacv1.ClusterRole{} // a Role has the same fields
		if documents.Decode(&role) != nil {
			return found
		}
		if len(role.Rules) > 0 {
			found[role.Name] = role.Rules
		}
	}
}

// unseen matches permissions that no request of the user shows, because the API server checks them itself: in the admission plugin
// OwnerReferencesPermissionEnforcement, for the status of claims, for deletes that ignore read errors, for a RoleBinding, and where a role that
// the run creates grants them.
var unseen = regexp.MustCompile(`/finalizers$|^resourceclaims/binding$|^unsafe-delete-|^bind$|^impersonate-on:serviceaccount:get$`)

// permissions returns the single permissions of rules, except unseen ones.
func permissions(rules []rbacv1.PolicyRule) []permission {
	var all []permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if unseen.MatchString(resource) || unseen.MatchString(verb) {
						continue
					}
					for _, name := range append(slices.Clone(rule.ResourceNames), "")[:max(len(rule.ResourceNames), 1)] {
						all = append(all, permission{group, resource, verb, name})
					}
				}
			}
		}
	}
	return all
}

// used returns the permissions that a user's requests needed and had, and those that the run's own ServiceAccounts needed to impersonate.
func (c *cluster) used(t *testing.T, user string) []permission {
	t.Helper()
	used := map[permission]bool{}
	accounts := map[string]bool{}
	for _, request := range c.requests(t, user) {
		for _, needed := range request.needed() {
			used[needed] = true
		}
		if about := request.ObjectRef; request.of("serviceaccounts") && about.Subresource == "token" {
			accounts["system:serviceaccount:"+about.Namespace+":"+about.Name] = true
		}
	}
	for account := range accounts {
		for _, request := range c.requests(t, account) {
			if request.ImpersonatedUser == nil {
				continue
			}
			for _, needed := range request.needed() {
				used[needed] = true
			}
		}
	}
	return slices.Collect(maps.Keys(used))
}

// needed returns the permissions that a request needed and had.
func (r request) needed() []permission {
	about := r.ObjectRef
	if r.ImpersonatedUser != nil {
		return r.impersonation()
	}
	if about == nil || r.Annotations["authorization.k8s.io/decision"] != "allow" {
		return nil
	}
	return []permission{{groupInRules(about.APIGroup), r.resource(), r.Verb, about.Name}}
}

// resource is the resource in rules, with the subresource.
func (r request) resource() string {
	return strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// impersonation returns the permissions that a request needed to impersonate.
func (r request) impersonation() []permission {
	as, constraint := r.ImpersonatedUser, r.AuthenticationMetadata.ImpersonationConstraint
	user := permission{"", "users", "impersonate", as.Username}
	if account, ok := strings.CutPrefix(as.Username, "system:serviceaccount:"); ok {
		user.resource = "serviceaccounts"
		_, user.name, _ = strings.Cut(account, ":")
	}
	var needed []permission
	if constraint != "" {
		user.group, user.verb = "authentication.k8s.io", constraint
		on := strings.Replace(constraint, "impersonate:", "impersonate-on:", 1) + ":" + r.Verb
		needed = append(needed, permission{groupInRules(r.ObjectRef.APIGroup), r.resource(), on, r.ObjectRef.Name})
	}
	for _, group := range as.Groups {
		needed = append(needed, permission{"", "groups", "impersonate", group})
	}
	return append(needed, user)
}

// groupInRules returns the API group in rules: "*" for the run's own groups.
func groupInRules(group string) string {
	if strings.HasSuffix(group, framework.Domain) {
		return "*"
	}
	return group
}

// byChance are permissions that a run uses only when a controller was slower than the run, which then removes the rest of a spec, and those
// that it uses only on a cluster with nodes, or in behaviors that wait for about a minute.
var byChance = []permission{
	{verb: "delete", resource: "resourcequotas"},
	{verb: "patch", resource: "pods/ephemeralcontainers"},
	{verb: "deletecollection", group: "discovery.k8s.io", resource: "endpointslices"},
	{verb: "patch", resource: "replicationcontrollers"},
	{verb: "deletecollection", group: "coordination.k8s.io", resource: "leases"},
	{verb: "get", group: "certificates.k8s.io", resource: "podcertificaterequests"},
	{verb: "list", group: "certificates.k8s.io", resource: "podcertificaterequests"},
	{verb: "create", group: "storage.k8s.io", resource: "csidrivers"},
	{verb: "delete", group: "storage.k8s.io", resource: "csidrivers"},
	{verb: "list", group: "storage.k8s.io", resource: "csidrivers"},
	{verb: "watch", group: "storage.k8s.io", resource: "csidrivers"},
}

// allUsed checks that every permission was used.
func (c *cluster) allUsed(t *testing.T, user string, granted []rbacv1.PolicyRule) {
	t.Helper()
	used := c.used(t, user)
	var unused []string
	for _, one := range permissions(granted) {
		isOne := func(other permission) bool { other.name = one.name; return other == one }
		if one.name != "" {
			isOne = func(other permission) bool { return other == one }
		}
		if !slices.ContainsFunc(used, isOne) && !slices.Contains(byChance, one) {
			unused = append(unused, one.String())
		}
	}
	NewWithT(t).Expect(unused).To(BeEmpty(), "permissions that no behavior uses")
}

// missing matches skip reasons of missing permissions, with a verb and a resource, and other expected ones.
var missing = regexp.MustCompile(`(missing permission:|cannot|would) [a-z]+ (resource )?"?[a-z]+|` +
	`no node is Ready|two schedulable nodes|does not serve|the feature gate [A-Za-z]+ is off|waits a minute or so|disruptive: run it|no controller was named`)

// explained checks that nothing failed, and that skip reasons name the missing permission.
func explained(t *testing.T, cluster v1alpha1.Cluster, atLeast int) {
	t.Helper()
	g := NewWithT(t)
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Deviated, v1alpha1.Errored} {
		g.Expect(reasons(cluster, outcome)).To(BeEmpty(), string(outcome))
	}
	for id, reason := range reasons(cluster, v1alpha1.Skipped) {
		g.Expect(reason).To(MatchRegexp(missing.String()), id)
	}
	g.Expect(len(reasons(cluster, v1alpha1.Passed))).To(BeNumerically(">=", atLeast))
}

func TestRun_SharedNamespace(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user, namespace = "insider", "given"
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.decorate(t, namespace)
	granted := c.grantRole(t, namespace, user)
	before := c.settledContentOf(t, namespace)

	ran := startRun(t, "--kubeconfig", c.user(t, user), "--namespace", namespace, "--procs", "8", "--kubectl", kubectl(t)).wait()

	g.Expect(ran.code).To(Equal(0))
	explained(t, ran.cluster(t), 200)
	c.allUsed(t, user, granted)
	run := ran.report(t).RunID
	g.Expect(c.mentioning(t, run)).To(BeEmpty(), "the run leaves nothing")
	after := c.contentOf(t, namespace)
	for name := range before {
		g.Expect(after).To(HaveKeyWithValue(name, before[name]), "what others have is left alone")
	}
	for name := range after {
		g.Expect(before).To(HaveKey(name), "and nothing is added")
	}
	var elsewhere []string
	for _, request := range c.requests(t, user) {
		inside := request.ObjectRef != nil && request.ObjectRef.Namespace == namespace
		if question := request.ObjectRef != nil && strings.HasSuffix(request.ObjectRef.Resource, "reviews") ||
			request.query().Get("dryRun") == metav1.DryRunAll && selects(request, run); request.writes() && !inside && !question {
			elsewhere = append(elsewhere, fmt.Sprint(request))
		}
	}
	g.Expect(elsewhere).To(BeEmpty(), "writes elsewhere")
}

func TestRBAC_OwnNamespaces(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "self-service"
	inside := c.inside(t)
	granted := rules(t, "clusterrole-self-service.yaml")
	kubeconfig := c.user(t, user)
	c.grant(t, user, granted["deletion-conformance-self-service"]...)
	c.platform(t, user, inside, func(context.Context, string) error { return nil })

	ran := startRun(t, "--kubeconfig", kubeconfig, "--procs", "8", "--kubectl", kubectl(t)).wait()

	g.Expect(ran.code).To(Equal(0))
	explained(t, ran.cluster(t), 200)
	for _, rules := range granted {
		c.allUsed(t, user, rules)
	}
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty(), "the run leaves nothing")
}

// startBounded starts a run within the boundary.
func startBounded(t *testing.T, kubeconfig string) *running {
	t.Helper()
	return startRun(t, "--kubeconfig", kubeconfig, "--namespace-label", "pod-security.kubernetes.io/enforce=restricted", "--procs", "8", "--kubectl", kubectl(t))
}

func TestRBAC_BindWithinBoundary(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "within-boundary"
	client, kubeconfig := c.client(t, user)
	granted := c.withinBoundary(t, client, user)

	ran := startBounded(t, kubeconfig).wait()

	g.Expect(ran.code).To(Equal(0))
	explained(t, ran.cluster(t), 200)
	c.allUsed(t, user, append(granted, rules(t, "clusterrole-self-service.yaml")["deletion-conformance-inside"]...))
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty(), "the run leaves nothing")
}

func TestRBAC_Boundary(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const user = "no-administrator"
	granted := rules(t, "clusterrole.yaml")["deletion-conformance"]
	client, kubeconfig := c.client(t, user)
	c.grant(t, user, granted...)
	c.bound(t, client, user)

	ran := startBounded(t, kubeconfig).wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	tested(t, cluster, offered)
	for id, reason := range reasons(cluster, v1alpha1.Skipped) {
		g.Expect(reason).NotTo(Or(ContainSubstring("credentials"), ContainSubstring(user)), id)
	}
	c.allUsed(t, user, granted)
	g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty(), "the run leaves nothing")
}

// without returns rules without one permission.
func without(rules []rbacv1.PolicyRule, taken permission) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, taken.group) && slices.Contains(rule.Resources, taken.resource) {
			alone := *rule.DeepCopy()
			alone.Resources = []string{taken.resource}
			alone.Verbs = slices.DeleteFunc(alone.Verbs, func(verb string) bool { return verb == taken.verb })
			rule = *rule.DeepCopy()
			rule.Resources = slices.DeleteFunc(rule.Resources, func(resource string) bool { return resource == taken.resource })
			kept = append(kept, alone)
		}
		kept = append(kept, rule)
	}
	return slices.DeleteFunc(kept, func(rule rbacv1.PolicyRule) bool { return len(rule.Resources) == 0 || len(rule.Verbs) == 0 })
}

func TestRBAC_MissingPermissionNamed(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	for _, test := range []struct {
		user     string
		lacks    permission
		behavior string
		reason   string
	}{
		{
			"lists-namespaces", permission{resource: "namespaces", verb: "watch"}, "finalizers.namespace.dry-run",
			"missing permission: watch namespaces",
		},
		{
			"lists-configmaps", permission{resource: "configmaps", verb: "watch"}, "finalizers.held",
			"missing permission: watch configmaps in namespace ",
		},
		{
			"allocates-nothing", permission{group: "resource.k8s.io", resource: "resourceclaims/binding", verb: "update"}, "finalizers.resource-claim-in-use",
			"missing permission: update resourceclaims/binding.resource.k8s.io",
		},
	} {
		t.Run(test.user, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			granted := rules(t, "clusterrole.yaml")["deletion-conformance"]
			kubeconfig := c.user(t, test.user)
			c.grant(t, test.user, without(granted, test.lacks)...)

			ran := startRun(t, "--kubeconfig", kubeconfig, "--label-filter", test.behavior).wait()

			g.Expect(ran.code).To(Equal(3), "nothing was tested")
			cluster := ran.cluster(t)
			g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKeyWithValue(test.behavior, HavePrefix(test.reason)))
			g.Expect(reasons(cluster, v1alpha1.Errored)).To(BeEmpty())
			g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty(), "the run leaves nothing")
		})
	}
}
