package graceful

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// addressFor returns a documentation address of the IP family of a Service, for a pod.
func addressFor(service *Object) string {
	if address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP"); strings.Contains(address, ":") {
		return "2001:db8::7"
	}
	return "192.0.2.7"
}

var _ = Describe("Endpoints of terminating pods", func() {
	cluster := UseCluster()

	// serving creates a pod with the condition Ready on a node without a kubelet, and a Service that selects it.
	serving := func(ctx SpecContext, name string, options ...ObjectOption) (pod, slice *Object) {
		const label = Domain + "/serves"
		cluster.Watch(ctx, fixtures.EndpointSlice())
		service := cluster.Create(ctx, fixtures.ServiceFor(name, label, name), options...)
		node := cluster.Create(ctx, fixtures.Node(name)) // pods on nonexistent nodes have no endpoints
		pod = cluster.Create(ctx, fixtures.GhostBoundPod(name), OnNode(node.GetName()), WithLabel(label, name))
		status, address := running(corev1.ConditionTrue), addressFor(service)
		status["podIP"], status["podIPs"] = address, []any{map[string]any{"ip": address}}
		cluster.SetStatus(ctx, pod, status)
		return pod, cluster.AwaitDependents(ctx, service, 1)[0]
	}
	// becomes waits until the endpoint had these conditions in order.
	becomes := func(ctx SpecContext, pod, slice *Object, conditions ...endpointCondition) {
		GinkgoHelper()
		events := make([]EventMatcher, len(conditions))
		for i, condition := range conditions {
			events[i] = Matching(slice, haveEndpoint(pod, condition))
		}
		Eventually(ctx, cluster.History(slice)).Should(HaveObserved(events...))
	}

	Specify("The endpoint of a terminating pod must be terminating and not ready, and serving only while the Ready "+
		"condition of the pod is True.",
		Behavior("graceful.endpoints-serving", Core, KCM, SimulatedNode, Source(podLifecycle), Promise(notReady)), func(ctx SpecContext) {
			pod, slice := serving(ctx, "serving")
			becomes(ctx, pod, slice, endpointReady)

			cluster.Delete(ctx, pod)
			becomes(ctx, pod, slice, endpointReady, endpointServing)
			cluster.SetStatus(ctx, pod, running(corev1.ConditionFalse))
			becomes(ctx, pod, slice, endpointReady, endpointServing, endpointNotServing)
		})

	Specify("With publishNotReadyAddresses the endpoint of a terminating pod must remain ready, even if the Ready "+
		"condition of the pod is False.",
		Behavior("graceful.endpoints-published", Core, KCM, SimulatedNode, Source("reference/kubernetes-api/core/service-v1"),
			Promise("all endpoints are considered \"ready\" even if the Pods themselves are not")), func(ctx SpecContext) {
			pod, slice := serving(ctx, "published", WithField(true, "spec", "publishNotReadyAddresses"))
			becomes(ctx, pod, slice, endpointReady)

			cluster.Delete(ctx, pod)
			becomes(ctx, pod, slice, endpointReady, endpointPublished)
			cluster.SetStatus(ctx, pod, running(corev1.ConditionFalse))
			becomes(ctx, pod, slice, endpointReady, endpointPublished, endpointPublishedNotServing)
			Expect(cluster.History(slice)).NotTo(HaveObserved(Matching(slice, haveEndpoint(pod, endpointTerminating))))
		})
})
