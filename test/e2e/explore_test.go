package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

func TestExplore_Kubernetes(t *testing.T) {
	t.Parallel()
	for scenario, properties := range map[string][]string{
		"objects":    {"explore.object.one-order", "explore.watch.complete"},
		"ownership":  {"explore.ownership.collected", "explore.watch.complete"},
		"grace":      {"explore.grace.only-decreases", "explore.watch.complete"},
		"namespaces": {"explore.namespace.emptied", "explore.watch.complete"},
		"workloads":  {"explore.workload.replicas", "explore.workload.kept"},
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := shared.in(t)

			ran := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", c.admin(t, "explorer-"+scenario), "--scenario", scenario,
				"--for", "10s", "--seed", "7").wait()

			ran.foundNothing(t)
			cluster := ran.explored(t)
			g.Expect(reasons(cluster, v1alpha1.Failed)).To(BeEmpty())
			for _, property := range properties {
				g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey(property))
			}
			g.Expect(c.mentioning(t, ran.report(t).RunID)).To(BeEmpty())
		})
	}
}

// foundNothing expects that an exploration has found nothing. Otherwise it logs what was found with the histories, which no later run repeats.
func (o outcome) foundNothing(t *testing.T) {
	t.Helper()
	if o.code != 0 {
		found, _ := filepath.Glob(filepath.Join(o.reports, "explore.*.md"))
		for _, file := range found {
			content, err := os.ReadFile(file)
			t.Logf("%s: %v\n%s", file, err, content)
		}
	}
	NewWithT(t).Expect(o.code).To(Equal(0), o.out)
}

// noOwnersElsewhere refuses the owners of an exploration that are cluster-scoped or in another namespace.
const noOwnersElsewhere = `
failurePolicy: Fail
matchConstraints:
  resourceRules:
  - {apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [clusterroles]}
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}
matchConditions: [{name: explorer, expression: request.userInfo.username == "NAME"}]
validations: [{expression: '!object.metadata.name.endsWith("-owner") && !object.metadata.name.endsWith("-elsewhere")', message: not here}]
`

func TestExplore_RefusedOwners(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const name = "explorer-without-owners"
	kubeconfig := c.admin(t, name)
	c.policy(t, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", name, noOwnersElsewhere)
	c.inEffect(t, name, func(client kubernetes.Interface, _ string) bool {
		_, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-owner"}}, dryRun)
		return apierrors.IsInvalid(err)
	})

	ran := startRunIn(t, emptyEnvironment(t), "explore", "--kubeconfig", kubeconfig, "--scenario", "ownership", "--for", "10s", "--seed", "7").wait()

	ran.foundNothing(t)
	g.Expect(reasons(ran.explored(t), v1alpha1.Skipped)).To(BeEmpty())
}

func TestExplore_FaultAndReplay(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	persistsDryRuns := c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPut || request.Method == http.MethodPatch {
				request.URL.RawQuery = strings.ReplaceAll(request.URL.RawQuery, "dryRun=All", "")
			}
			next.ServeHTTP(writer, request)
		}
	})
	explore := func(arguments ...string) outcome {
		return startRunIn(t, emptyEnvironment(t), append(arguments, "--kubeconfig", persistsDryRuns, "--resource", "leases", "--for", "4m", "--reduce-for", "3s")...).wait()
	}

	ran := explore("explore", "--seed", "7")

	const property = "explore.object.one-order"
	g.Expect(ran.code).To(Equal(1))
	g.Expect(reasons(ran.explored(t), v1alpha1.Failed)).To(HaveLen(1))
	failure := resultOf(ran.explored(t), property).Failure
	g.Expect(failure.Message).To(And(ContainSubstring("--replay"), MatchRegexp(`after \d+ attempts to reduce it|not reduced`)))

	again := explore("explore", "--replay", filepath.Join(ran.reports, property+".json"))
	g.Expect(again.code).To(Equal(1))
	g.Expect(reasons(again.explored(t), v1alpha1.Failed)).To(HaveKey(property))
}

// explored returns the cluster of an exploration, whose results are properties.
func (o outcome) explored(t *testing.T) v1alpha1.Cluster {
	t.Helper()
	whole := o.report(t)
	NewWithT(t).Expect(whole.Clusters).To(HaveLen(1))
	return whole.Clusters[0]
}

func TestExplore_RealNode(t *testing.T) {
	clustertest.Long(t)
	if built.missing != nil {
		t.Skip(built.missing)
	}
	if err := embedded.NodeSupported(); err != nil {
		t.Skip(err)
	}
	g := NewWithT(t)
	_, environment := embedding(t)

	ran := startRunIn(t, environment, "explore", "--provider", "embedded", "--scenario", "nodes", "--for", "60s", "--seed", "7").wait()

	ran.foundNothing(t)
	g.Expect(reasons(ran.explored(t), v1alpha1.Failed)).To(BeEmpty())
	g.Expect(reasons(ran.explored(t), v1alpha1.Passed)).To(And(HaveKey("explore.node.full-grace"), HaveKey("explore.node.removed")))
}
