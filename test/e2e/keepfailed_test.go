package e2e

import (
	"net/http"
	"regexp"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
)

// refusedOnce matches the paths of the objects whose first deletion a server refuses.
var refusedOnce = regexp.MustCompile(`/(configmaps|poddisruptionbudgets)/[^/]+$`)

// refusingOnce returns a kubeconfig of a proxy that refuses the first delete of some objects.
func (c *cluster) refusingOnce(t *testing.T) string {
	t.Helper()
	var refused sync.Map
	return c.throughProxy(t, func(next http.Handler) http.HandlerFunc {
		return func(writer http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodDelete && refusedOnce.MatchString(request.URL.Path) {
				if _, again := refused.LoadOrStore(request.URL.Path, true); !again {
					writer.Header().Set("Content-Type", "application/json")
					writer.WriteHeader(http.StatusConflict)
					_, _ = writer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict","message":"not now"}`))
					return
				}
			}
			next.ServeHTTP(writer, request)
		}
	})
}

func TestKeepFailed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	const held, quota, passes = "finalizers.held", "finalizers.quota-counts-until-removal", "graceful.immediate-grace-zero"

	ran := startRun(t, "--kubeconfig", c.refusingOnce(t), "--procs", "2", "--keep-failed", "--label-filter", held+" || "+quota+" || "+passes).wait()

	g.Expect(ran.code).To(Equal(1))
	cluster, run := ran.cluster(t), ran.report(t).RunID
	g.Expect(reasons(cluster, v1alpha1.Failed)).To(And(HaveLen(2), HaveKey(held), HaveKey(quota)))
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey(passes))
	g.Expect(cluster.LeftBehind).To(BeEmpty())
	g.Expect(cluster.Kept).To(And(
		MatchRegexp(`(?m)^finalizers\.held:\n  ConfigMap `+run+`-\d/`),
		MatchRegexp(`(?m)^finalizers\.quota-counts-until-removal:\n(  .*\n)*  Namespace quota-`),
		MatchRegexp(`(?m)^to remove them, run .runner cleanup --run `+run+` --kubeconfig .* there$`),
	))
	g.Expect(cluster.Kept).NotTo(ContainSubstring(passes))
	g.Expect(ran.out).To(ContainSubstring(cluster.Kept))
	for name, output := range ran.outputs(t) {
		if name != "standard error" {
			g.Expect(output).To(ContainSubstring("cleanup --run "+run), name)
		}
	}

	own := metav1.ListOptions{LabelSelector: session.RunLabel + "=" + run}
	configMaps, err := c.CoreV1().ConfigMaps(metav1.NamespaceAll).List(t.Context(), own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(configMaps.Items).To(ContainElement(HaveField("Finalizers", Not(BeEmpty()))), "a hold stays in a namespace that is kept")
	quotas, err := c.CoreV1().ResourceQuotas(metav1.NamespaceAll).List(t.Context(), own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(quotas.Items).To(BeEmpty())
	budgets, err := c.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(t.Context(), own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(budgets.Items).To(BeEmpty())
	leases, err := c.CoordinationV1().Leases(metav1.NamespaceAll).List(t.Context(), own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leases.Items).To(BeEmpty())

	caretaker := c.admin(t, "keeper")
	listed := start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", caretaker, "--dry-run").wait() // other tests have leftovers, too
	g.Expect(listed.out).To(And(MatchRegexp("run "+run+" on .* kept the objects of failed behaviors"), ContainSubstring("  Namespace "+run+"-"), MatchRegexp("  Namespace quota-"+run+"-"), Not(ContainSubstring("run "+run+" left on"))))
	g.Expect(start(t, emptyEnvironment(t), "cleanup", "--kubeconfig", caretaker, "--run", run).wait().code).To(BeZero())
	g.Expect(c.mentioning(t, run)).To(BeEmpty())
}
