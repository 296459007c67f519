package embedded_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

func TestNodeThatIsLostIsReplaced(t *testing.T) {
	supported(t)
	before := lookAtHost(t)
	local := create(t, embedded.WithNodes(2, images))
	client, socket := clientFor(t, local.RESTConfig()), local.Features().Components
	const lost, kept = "embedded-node-2", "embedded-node-1"
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
	if err := local.Destroy(); err != nil {
		t.Error(err)
	}
	before.unchanged(t)
}

func TestContainersOutliveTheirRuntime(t *testing.T) {
	supported(t)
	local := create(t, embedded.WithNodes(1, images))
	client, socket, runtime := clientFor(t, local.RESTConfig()), local.Features().Components, component.Runtime.On("embedded-node-1")
	start(t, client, script("continues", endsWithSeven, 1))
	if err := component.Stop(t.Context(), socket, runtime); err != nil {
		t.Fatal(err)
	}
	if err := local.Alive(); err != nil {
		t.Errorf("a component that was stopped is not missing: %v", err)
	}
	if err := component.Start(t.Context(), socket, runtime); err != nil {
		t.Fatal(err)
	}
	start(t, client, script("another", endsWithSeven, 1))
	pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), "continues", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if state := pod.Status.ContainerStatuses[0]; state.State.Running == nil || state.RestartCount > 0 {
		t.Errorf("the container ended with its runtime: %+v", state)
	}
}
