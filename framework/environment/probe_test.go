package environment

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestWebhookHost(t *testing.T) {
	for _, test := range []struct{ name, named, server, pod, want string }{
		{"what the user says", "192.0.2.7", "https://127.0.0.1:6443", "", "192.0.2.7"},
		{"a server on loopback", "", "https://127.0.0.1:6443", "", "127.0.0.1"},
		{"on loopback by name", "", "https://localhost:6443", "", "127.0.0.1"},
		{"on loopback, version 6", "", "https://[::1]:6443", "", "127.0.0.1"},
		{"a server elsewhere", "", "https://api.example.com", "", ""},
		{"inside the cluster", "", "https://10.0.0.1:443", "10.1.2.3", "10.1.2.3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("POD_IP", test.pod)
			if got := webhookHost(test.named, test.server); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestReadyRuntime(t *testing.T) {
	node := func(ready string) *Object {
		node := stored("node")
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
	g.Expect(readyRuntime(stored("node"))).To(BeEmpty())
}

func TestNodesAreLookedAtByThePage(t *testing.T) {
	const simulated = `{"metadata":{"name":"a","annotations":{"kwok.x-k8s.io/node":"fake"}},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"containerRuntimeVersion":"kwok-v0.6"}}}`
	const unready = `{"metadata":{"name":"b"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	const ready = `{"metadata":{"name":"c"},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"containerRuntimeVersion":"containerd://2.0"}}}`
	for _, test := range []struct {
		name          string
		pages         []string
		want, runtime string
		asked         int32
	}{
		{"none", []string{""}, "no node is ready (0 in all)", "", 1},
		{"the first is ready", []string{ready, unready}, "", "containerd://2.0", 1},
		{"one of a later page is ready", []string{unready, simulated, ready}, "", "containerd://2.0", 3},
		{"none is ready", []string{unready, unready}, "no node is ready (2 in all)", "", 2},
		{"all are simulated", []string{simulated, simulated}, "no node is real: KWOK simulates them, and runs no containers", "", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			client, asked := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				query := request.URL.Query()
				g.Expect(query.Get("limit")).To(Equal(nodesAtOnce))
				page, next := len(query.Get("continue")), ""
				if page+1 < len(test.pages) {
					next = strings.Repeat("x", page+1)
				}
				_, _ = fmt.Fprintf(writer, `{"apiVersion":"v1","kind":"NodeList","metadata":{"continue":%q},"items":[%s]}`, next, test.pages[page])
			})
			visit := Visit{client: client}
			g.Expect(visit.probeNodes(t.Context())).To(Equal(test.want))
			g.Expect(visit.NodeRuntime()).To(Equal(test.runtime))
			g.Expect(asked.Load()).To(Equal(test.asked))
		})
	}
}

func TestANamespaceIsFinalizedAtOnceOnlyWhereNoControllersAre(t *testing.T) {
	absent := "nobody answered"
	for _, test := range []struct {
		name     string
		missing  map[v1alpha1.Need]string
		unprobed bool
		want     time.Duration
	}{
		{"all controllers", nil, false, unattendedTime},
		{"no collector only", map[v1alpha1.Need]string{v1alpha1.GC: absent}, false, unattendedTime},
		{"no other controllers only", map[v1alpha1.Need]string{v1alpha1.KCM: absent}, false, unattendedTime},
		{"none", map[v1alpha1.Need]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, false, 0},
		{"nobody knows", map[v1alpha1.Need]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, true, unattendedTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			visit := Visit{missing: test.missing, unprobed: test.unprobed}
			if got := visit.unattendedAfter(); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestWhyANamespaceStays(t *testing.T) {
	g := NewWithT(t)
	namespace := stored("dc-1")
	g.Expect(whyNamespaceStays(Answer{Object: namespace})).To(Equal("nothing is said to hold it"))
	conditions := []any{
		map[string]any{"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"},
		map[string]any{"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all is well"},
		map[string]any{"type": "NamespaceFinalizersRemaining", "status": "True", "message": "a.io/b in 1 resource instances"},
	}
	g.Expect(unstructured.SetNestedSlice(namespace.Object, conditions, "status", "conditions")).To(Succeed())
	g.Expect(whyNamespaceStays(Answer{Object: namespace})).To(Equal("pods. has 1 resource instances; a.io/b in 1 resource instances"))
	g.Expect(whyNamespaceStays(Answer{Err: forbidden("dc-1", "not allowed")})).To(Equal("not allowed"))
}

func TestACanaryIsAManifestAgain(t *testing.T) {
	g := NewWithT(t)
	live := stored("owner-abc", dying, Held)
	live.Object["status"] = map[string]any{"phase": "Running"}
	live.Object["data"] = map[string]any{"a": "b"}
	g.Expect(canary(live).Object).To(Equal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "canary"}, "data": map[string]any{"a": "b"},
	}))
	g.Expect(live).To(BeTerminating(), "the object itself is left as it was")
}
