package preflight

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestReadyRuntime(t *testing.T) {
	node := func(ready string) *client.Object {
		node := &client.Object{Object: map[string]any{}}
		err := unstructured.SetNestedMap(node.Object, map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": ready}},
			"nodeInfo":   map[string]any{"containerRuntimeVersion": "containerd://1.7.2"},
		}, "status")
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	g := NewWithT(t)
	g.Expect(readyRuntime(node("True"))).To(Equal("containerd://1.7.2"))
	g.Expect(readyRuntime(node("Unknown"))).To(BeEmpty())
	g.Expect(readyRuntime(&client.Object{Object: map[string]any{}})).To(BeEmpty())
}

func TestProbeNodes_Pages(t *testing.T) {
	const simulated = `{"metadata":{"name":"a","annotations":{"kwok.x-k8s.io/node":"fake"}},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"containerRuntimeVersion":"kwok-v0.6"}}}`
	const unready = `{"metadata":{"name":"b"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	const windows = `{"metadata":{"name":"d","labels":{"kubernetes.io/os":"windows"}},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"containerRuntimeVersion":"containerd://2.0"}}}`
	const ready = `{"metadata":{"name":"c"},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"containerRuntimeVersion":"containerd://2.0"}}}`
	for _, test := range []struct {
		name          string
		pages         []string
		want, runtime string
		asked         int32
	}{
		{"none", []string{""}, "no node is Ready (nodes in the cluster: 0)", "", 1},
		{"the first is ready", []string{ready, unready}, "<nil>", "containerd://2.0", 1},
		{"one of a later page is ready", []string{unready, simulated, ready}, "<nil>", "containerd://2.0", 3},
		{"none is ready", []string{unready, unready}, "no node is Ready (nodes in the cluster: 2)", "", 2},
		{"none is a Linux node", []string{windows, unready, windows}, "no Linux node is Ready (nodes in the cluster: 3, windows)", "", 3},
		{"all are simulated", []string{simulated, simulated}, "no node runs containers: KWOK simulates the nodes", "", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			connected, asked := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				query := request.URL.Query()
				g.Expect(query.Get("limit")).To(Equal(maxParallelNodes))
				page, next := len(query.Get("continue")), ""
				if page+1 < len(test.pages) {
					next = strings.Repeat("x", page+1)
				}
				_, _ = fmt.Fprintf(writer, `{"apiVersion":"v1","kind":"NodeList","metadata":{"continue":%q},"items":[%s]}`, next, test.pages[page])
			})
			runtime, err := probeNodes(t.Context(), Target{Client: connected})
			g.Expect(fmt.Sprint(err)).To(Equal(test.want))
			g.Expect(runtime).To(Equal(test.runtime))
			g.Expect(asked.Load()).To(Equal(test.asked))
		})
	}
}

func TestProbe_RuntimeOfGuaranteedNodes(t *testing.T) {
	for name, test := range map[string]struct{ condition, runtime string }{
		"ready":         {"True", "containerd://2.0"},
		"not ready yet": {"False", ""},
	} {
		t.Run(name, func(t *testing.T) {
			connected, _ := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(writer, `{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"a"},
					"status":{"conditions":[{"type":"Ready","status":%q}],"nodeInfo":{"containerRuntimeVersion":"containerd://2.0"}}}]}`, test.condition)
			})
			result := &Result{target: Target{Client: connected, Supported: v1alpha1.Features}}
			g := NewWithT(t)
			g.Expect(result.probe(t.Context(), apis{})).To(Succeed())
			g.Expect(result.Unsupported()).To(BeEmpty(), "the node is guaranteed")
			g.Expect(result.NodeRuntime).To(Equal(test.runtime))
		})
	}
}

func TestProbeNodes_NotServed(t *testing.T) {
	connected, _ := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`)
	})
	g := NewWithT(t)
	_, err := probeNodes(t.Context(), Target{Client: connected})
	g.Expect(err).To(MatchError(errNoNodes))
	_, err = probeTwoNodes(t.Context(), Target{Client: connected})
	g.Expect(err).To(MatchError(errNoNodes))
}

func TestSimulatedBy(t *testing.T) {
	node := func(labels, annotations map[string]string) *client.Object {
		node := &client.Object{Object: map[string]any{}}
		node.SetLabels(labels)
		node.SetAnnotations(annotations)
		return node
	}
	for _, test := range []struct {
		name string
		node *client.Object
		want string
	}{
		{"a real node", node(nil, nil), ""},
		{"KWOK's annotation", node(nil, map[string]string{"kwok.x-k8s.io/node": "fake"}), "KWOK"},
		{"KWOK's label", node(map[string]string{"type": "kwok"}, nil), "KWOK"},
		{"Virtual Kubelet's label", node(map[string]string{"type": "virtual-kubelet"}, nil), "Virtual Kubelet"},
	} {
		if got := simulatedBy(test.node); got != test.want {
			t.Errorf("%s: want %q, got %q", test.name, test.want, got)
		}
	}
}

func TestCloudOf(t *testing.T) {
	for id, cloud := range map[string]string{
		"": "", "kind://docker/kind/kind-control-plane": "", "k3s://server": "", "kwok://a": "",
		"aws:///eu-west-1a/i-0123": "aws", "gce://project/zone/name": "gce", "ocid1.instance.oc1": "provider id ocid1.instance.oc1",
	} {
		node := &client.Object{Object: map[string]any{}}
		_ = unstructured.SetNestedField(node.Object, id, "spec", "providerID")
		NewWithT(t).Expect(cloudOf(node)).To(Equal(cloud), id)
	}
}
