package preflight

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestProbePod(t *testing.T) {
	for _, test := range []struct {
		name, status string
		code         int
		want         string
	}{
		{"runs", `{"phase":"Running"}`, http.StatusOK, "<nil>"},
		{"deleted by others", `{}`, http.StatusNotFound, "<nil>"},
		{"rejected by the node", `{"phase":"Failed","reason":"OutOfpods","message":"the node has no room"}`, http.StatusOK,
			"no node runs a pod of the run: OutOfpods: the node has no room"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			deleted := false
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				deleted = deleted || request.Method == http.MethodDelete
				pod := client.Object{}
				if request.Method == http.MethodPost {
					_ = json.NewDecoder(request.Body).Decode(&pod.Object)
					g.Expect(pod.GetNamespace()).To(Equal("dcx7k2p9q4-1"))
					writer.WriteHeader(http.StatusCreated)
					_ = json.NewEncoder(writer).Encode(pod.Object)
					return
				}
				if writer.WriteHeader(test.code); test.code == http.StatusNotFound {
					_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
					return
				}
				_, _ = fmt.Fprintf(writer, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"dcx7k2p9q4-1"},"spec":{"nodeName":"a"},"status":%s}`, test.status)
			})
			target := Target{
				Config: session.Config{Run: "dcx7k2p9q4", Namespace: "dcx7k2p9q4-1"}, Client: connected,
				Behaviors: []v1alpha1.Behavior{{ID: "any", Features: []v1alpha1.Feature{v1alpha1.Node}}},
			}
			g.Expect(fmt.Sprint(probePod(t.Context(), target, v1alpha1.Node, "a"))).To(Equal(test.want))
			g.Expect(deleted).To(BeTrue(), "the pod is deleted")
		})
	}
}

func TestBlockedBy(t *testing.T) {
	for _, test := range []struct {
		name, pod, want string
	}{
		{"not scheduled", `{}`, "no scheduler handles it"},
		{"unschedulable", `{"status":{"conditions":[{"type":"PodScheduled","status":"False","message":"0/1 nodes are available"}]}}`, "0/1 nodes are available"},
		{"starting", `{"spec":{"nodeName":"a"},"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}]}}`, ""},
		{"without an image", `{"spec":{"nodeName":"a"},"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"back-off"}}}]}}`,
			"ImagePullBackOff: back-off"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, pod := NewWithT(t), corev1.Pod{}
			g.Expect(json.Unmarshal([]byte(test.pod), &pod)).To(Succeed())
			reason, final := blockedBy(pod)
			g.Expect(reason).To(Equal(test.want))
			g.Expect(final).To(BeFalse())
		})
	}
}
