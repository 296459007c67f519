package embedded_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const firstNode, secondNode = "embedded-node-1", "embedded-node-2"

func TestTwoNodes(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	local := create(t, embedded.WithNodes(2, images))
	for _, test := range []struct {
		name string
		run  func(*testing.T, *embedded.Cluster)
	}{
		{"their pods reach each other", reachEachOther},
		{"pods stay without their kubelet", keepsPodsOfStoppedKubelet},
		{"containers outlive their runtime", keepsContainersWithoutRuntime},
		{"a machine that is lost is replaced", replacesLostMachine},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, local) })
	}
	nodes := tracesOf(t, filepath.Dir(local.Kubeconfig()))
	if err := local.Destroy(); err != nil {
		t.Error(err)
	}
	nodes.gone(t)
	before.unchanged(t)
}

// reachEachOther shows that pods of each node reach those of the other.
func reachEachOther(t *testing.T, local *embedded.Cluster) {
	client := clientFor(t, local.RESTConfig())
	pods := client.CoreV1().Pods(namespace)
	const serves = `mkdir /tmp/served; echo hello >/tmp/served/index.html; echo ready; httpd -f -p 8080 -h /tmp/served`
	for _, node := range []string{firstNode, secondNode} {
		start(t, client, on(script("server-"+node, serves, 1), node))
	}
	for node, other := range map[string]string{firstNode: secondNode, secondNode: firstNode} {
		server, err := pods.Get(t.Context(), "server-"+other, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name := "client-" + node
		asks := "until wget -q -O- http://" + server.Status.PodIP + ":8080/; do sleep 0.1; done"
		start(t, client, on(script(name, asks+"; sleep 1000", 1), node))
		eventually(t, 20*time.Second, "the log of "+name+" shows the answer", func() bool {
			log, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return strings.HasSuffix(string(log), "hello\n")
		})
	}
}

// keepsPodsOfStoppedKubelet shows that a pod of a node without kubelet stays.
func keepsPodsOfStoppedKubelet(t *testing.T, local *embedded.Cluster) {
	client, socket, kubelet := clientFor(t, local.RESTConfig()), local.Features().Components, component.Kubelet.On(firstNode)
	start(t, client, on(script("cut-off", endsWithSeven, 1), firstNode))
	if err := component.Stop(t.Context(), socket, kubelet); err != nil {
		t.Fatal(err)
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a component that was stopped is not missing: %v", err)
	}
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), "cut-off", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Consistently(func() bool { return gone(t, client, "cut-off") }).WithTimeout(3*time.Second).Should(
		BeFalse(), "beyond its grace nothing can have ended the pod")
	for range 2 { // it is idempotent
		if err := component.Start(t.Context(), socket, kubelet); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 20*time.Second, "the pod is gone", func() bool { return gone(t, client, "cut-off") })
	if err := local.Alive(); err != nil {
		t.Error(err)
	}
}

// keepsContainersWithoutRuntime shows that containers outlive their runtime.
func keepsContainersWithoutRuntime(t *testing.T, local *embedded.Cluster) {
	client, socket, runtime := clientFor(t, local.RESTConfig()), local.Features().Components, component.Runtime.On(firstNode)
	start(t, client, on(script("continues", endsWithSeven, 1), firstNode))
	if err := component.Stop(t.Context(), socket, runtime); err != nil {
		t.Fatal(err)
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a component that was stopped is not missing: %v", err)
	}
	if err := component.Start(t.Context(), socket, runtime); err != nil {
		t.Fatal(err)
	}
	start(t, client, on(script("another", endsWithSeven, 1), firstNode))
	pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), "continues", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if state := pod.Status.ContainerStatuses[0]; state.State.Running == nil || state.RestartCount > 0 {
		t.Errorf("the container ended with its runtime: %+v", state)
	}
}

// replacesLostMachine shows that a machine that is lost with its containers is replaced by a new one.
func replacesLostMachine(t *testing.T, local *embedded.Cluster) {
	client, socket := clientFor(t, local.RESTConfig()), local.Features().Components
	const lost, kept = secondNode, firstNode
	start(t, client, on(script("lost", endsWithSeven, 1), lost))
	start(t, client, on(script("kept", endsWithSeven, 1), kept))
	for range 2 { // it is idempotent
		if err := component.Stop(t.Context(), socket, component.Machine.On(lost)); err != nil {
			t.Fatal(err)
		}
	}
	if err := component.Stop(t.Context(), socket, component.InService.On(lost)); err != nil {
		t.Fatal(err)
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a node that was stopped is not missing: %v", err)
	}
	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), "lost", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []component.Component{component.InService, component.Machine, component.Kubelet, component.Runtime} {
		if err := component.Start(t.Context(), socket, part.On(lost)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 30*time.Second, "the new machine confirms that the pod is gone", func() bool { return gone(t, client, "lost") })
	start(t, client, on(script("new", endsWithSeven, 1), lost))
	if found := phase(t, client, "kept"); found != corev1.PodRunning {
		t.Errorf("the pod on the other node is %s", found)
	}
}
