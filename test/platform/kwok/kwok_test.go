// Package kwok tests that nodes of KWOK are recognized: behaviors that require a real node are skipped with that reason.
package kwok

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/internal/clustertest"
)

const (
	// bin is the output directory of `make build` and `make bin/kwok`.
	bin = "../../../bin"
	// annotation marks KWOK's nodes.
	annotation = "kwok.x-k8s.io/node"
)

func TestSimulatedNodes(t *testing.T) {
	g := NewWithT(t)
	cluster := clustertest.Cluster(t, bin)
	startKWOK(t, cluster)
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{annotation: "fake"}}}
	_, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() ([]corev1.NodeCondition, error) {
		seen, err := client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		return seen.Status.Conditions, err
	}).WithTimeout(30*time.Second).Should(ContainElement(And(
		HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))), "KWOK makes the node ready")

	runner := exec.Command(filepath.Join(bin, "runner"), "--kubeconfig", cluster.Kubeconfig(),
		"--label-filter", "graceful.immediate-grace-zero || features: containsAny node")
	said, err := runner.CombinedOutput()

	g.Expect(err).NotTo(HaveOccurred(), string(said))
	g.Expect(string(said)).To(ContainSubstring("node: no node runs containers: KWOK simulates the nodes"))
	g.Expect(string(said)).To(ContainSubstring("1 passed, 0 failed"))
}

// startKWOK starts KWOK on a cluster.
func startKWOK(t *testing.T, cluster *embedded.Cluster) {
	t.Helper()
	output := &bytes.Buffer{}
	kwok := exec.Command(filepath.Join(bin, "kwok"), "--kubeconfig", cluster.Kubeconfig(),
		"--config", "testdata/stages.yaml",
		"--manage-nodes-with-annotation-selector", annotation+"=fake", "--server-address", "127.0.0.1:0")
	kwok.Stdout, kwok.Stderr = output, output
	if err := kwok.Start(); err != nil {
		t.Skipf("KWOK was not built (%v): make bin/kwok does it", err)
	}
	t.Cleanup(func() {
		_ = kwok.Process.Kill()
		_ = kwok.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
}
