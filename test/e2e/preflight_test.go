package e2e

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

// preflight returns the findings of `runner preflight`, by check.
func preflight(t *testing.T, arguments ...string) map[string][]v1alpha1.Finding {
	t.Helper()
	ran := start(t, emptyEnvironment(t), append([]string{"preflight", "--output", "json"}, arguments...)...).wait()
	var clusters []struct{ Preflight []v1alpha1.Finding }
	if err := json.Unmarshal([]byte(ran.out), &clusters); err != nil || len(clusters) != 1 {
		t.Fatalf("what preflight printed cannot be read: %v", err)
	}
	found := map[string][]v1alpha1.Finding{}
	for _, finding := range clusters[0].Preflight {
		found[finding.Check] = append(found[finding.Check], finding)
	}
	return found
}

// preflightOf returns the findings of a check in a report.
func preflightOf(cluster v1alpha1.Cluster, check string) []v1alpha1.Finding {
	return slices.DeleteFunc(slices.Clone(cluster.Preflight), func(finding v1alpha1.Finding) bool { return finding.Check != check })
}

// deleteNodes deletes every new Node, as a cloud's node controller does with Nodes that the cloud does not know.
func (c *cluster) deleteNodes(t *testing.T) {
	t.Helper()
	watcher, err := c.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				_ = c.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}) // it may have been deleted already
			}
		}
	}()
}

func TestPreflight(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	g := NewWithT(t)
	c := hindered.in(t)
	kubeconfig := c.admin(t, "preflight")
	const selected = "finalizers.namespace.preconditions || kubectl.drain || finalizers.held"
	before := preflight(t, "--kubeconfig", kubeconfig, "--kubectl", kubectl(t), "--label-filter", selected)
	g.Expect(before["apiservices"]).To(ConsistOf(HaveField("Severity", v1alpha1.OK)))
	g.Expect(before["nodes"]).To(ConsistOf(HaveField("Severity", v1alpha1.OK)))

	requests, err := dynamic.NewForConfig(c.config)
	g.Expect(err).NotTo(HaveOccurred())
	stale := fixtures.APIService("stale.example.com", "default")
	services := requests.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err = services.Create(t.Context(), stale, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.deleteNodes(t)
	g.Eventually(func() map[string][]v1alpha1.Finding {
		return preflight(t, "--kubeconfig", kubeconfig, "--kubectl", kubectl(t), "--label-filter", selected)
	}).WithTimeout(time.Minute).Should(And(
		HaveKeyWithValue("apiservices", ContainElement(And(
			HaveField("Cause", ContainSubstring(`APIService "v1.stale.example.com" is unavailable`)),
			HaveField("Behaviors", ConsistOf("finalizers.namespace.preconditions"))))),
		HaveKeyWithValue("nodes", ConsistOf(And(
			HaveField("Cause", ContainSubstring("Nodes without a machine are deleted")), HaveField("Behaviors", ConsistOf("kubectl.drain")))))))

	ran := startRun(t, "--kubeconfig", kubeconfig, "--kubectl", kubectl(t), "--label-filter", selected).wait()
	g.Expect(ran.code).To(Equal(4), "the namespaces of the run stay")
	g.Expect(ran.errOut).To(ContainSubstring(`APIService "v1.stale.example.com" is unavailable`))
	g.Expect(ran.took).To(BeNumerically("<", time.Minute))
	tested := ran.cluster(t)
	g.Expect(reasons(tested, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
	g.Expect(reasons(tested, v1alpha1.Skipped)).To(And(
		HaveKeyWithValue("finalizers.namespace.preconditions", ContainSubstring("v1.stale.example.com")),
		HaveKeyWithValue("kubectl.drain", ContainSubstring("are deleted"))))
	g.Expect(services.Delete(t.Context(), stale.GetName(), metav1.DeleteOptions{})).To(Succeed())
}
