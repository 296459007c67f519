package environment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestInOrder(t *testing.T) {
	collection := func(group, resource string) client.Collection {
		return client.Collection{Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}}
	}
	collections := []client.Collection{
		collection("rbac.authorization.k8s.io", "rolebindings"),
		collection("", "configmaps"),
		collection("things.example.com", "things"),
		collection("rbac.authorization.k8s.io", "roles"),
		collection("apps", "replicasets"),
		collection("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
	}
	var order []string
	for _, one := range slices.SortedFunc(slices.Values(collections), inOrder) {
		order = append(order, one.Resource.Resource)
	}
	NewWithT(t).Expect(order).To(Equal([]string{"validatingwebhookconfigurations", "configmaps", "replicasets", "things", "rolebindings", "roles"}))
}

func TestUnattendedAfter(t *testing.T) {
	absent := "no response"
	for _, test := range []struct {
		name        string
		unsupported map[v1alpha1.Feature]string
		interrupted bool
		slowness    float64
		want        time.Duration
	}{
		{"all controllers", nil, false, 1, busyTime},
		{"no collector only", map[v1alpha1.Feature]string{v1alpha1.GC: absent}, false, 1, busyTime},
		{"no other controllers only", map[v1alpha1.Feature]string{v1alpha1.KCM: absent}, false, 1, busyTime},
		{"none", map[v1alpha1.Feature]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, false, 1, 0},
		{"interrupted", map[v1alpha1.Feature]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, true, 1, unattendedTime},
		{"slow ones", nil, false, 4, 4 * busyTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment := &Environment{options: Options{Settings: session.Settings{Slowness: test.slowness}, Unsupported: test.unsupported}}
			if test.interrupted {
				environment.found = &preflight.Result{Interrupted: true}
			}
			if got := environment.cleanup().unattendedAfter(); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestCleanup_Timeout(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	takes := func(environment *Environment) time.Duration { return environment.cleanup().start(now).end.Sub(now) }
	g.Expect(takes(&Environment{})).To(Equal(90 * time.Second))
	const remaining = 75 * time.Second
	reserve, cleanup := Reserve(remaining)
	cut := (&Environment{options: Options{CleanupTimeout: cleanup}}).cleanup().start(now)
	g.Expect(cut.lookEnd).To(BeTemporally("<", now.Add(reserve)), "a run that is cut off has named what is left")
	slow := session.Settings{Slowness: 4}
	g.Expect(takes(&Environment{options: Options{Settings: slow}})).To(Equal(6 * time.Minute))
	g.Expect(takes(&Environment{options: Options{Settings: slow, CleanupTimeout: time.Second}})).To(Equal(time.Second), "the user has chosen")
}

func TestIsHeldBySpec(t *testing.T) {
	g := NewWithT(t)
	for _, test := range []struct {
		finalizers []string
		want       bool
	}{
		{[]string{"kubernetes"}, false},
		{[]string{client.Domain + "/b", "kubernetes"}, false},
		{[]string{client.Domain + "/b"}, true},
		{[]string{"a.io/b"}, false}, // teardown waits for its controller
		{nil, false},
	} {
		namespace := fixtures.Namespace("dc-1")
		g.Expect(unstructured.SetNestedStringSlice(namespace.Object, test.finalizers, "spec", "finalizers")).To(Succeed())
		g.Expect(isHeldBySpec(namespace)).To(Equal(test.want), "%q", test.finalizers)
	}
}

func TestTerminatingReason(t *testing.T) {
	g := NewWithT(t)
	connected, _ := asking(t, func(http.ResponseWriter, *http.Request) {})
	namespace := fixtures.Namespace("dc-1")
	g.Expect(terminatingReason(connected, namespace)).To(BeEmpty())
	conditions := []any{
		map[string]any{"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"},
		map[string]any{"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all is well"},
		map[string]any{"type": "NamespaceFinalizersRemaining", "status": "True", "message": "a.io/b in 1 resource instances"},
	}
	g.Expect(unstructured.SetNestedSlice(namespace.Object, conditions, "status", "conditions")).To(Succeed())
	g.Expect(terminatingReason(connected, namespace)).To(Equal("pods. has 1 resource instances; a.io/b in 1 resource instances"))
}

func TestUnavailableAPIServices(t *testing.T) {
	g := NewWithT(t)
	said := unavailableServices([]string{"v1beta1.metrics.k8s.io"}, "Discovery failed for some groups")
	g.Expect(said).To(And(HavePrefix("APIService v1beta1.metrics.k8s.io is unavailable"), ContainSubstring("repair its server, or delete the APIService"),
		HaveSuffix("Discovery failed for some groups")))
}

func TestTeardown_ClusterScopedObjects(t *testing.T) {
	const things = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, test := range []struct {
		name   string
		listed int
		want   string
	}{
		{"they may be looked at", http.StatusOK, ""},
		{"what may not be looked at was not made", http.StatusForbidden, ""},
		{"they could not be looked at", http.StatusBadRequest, "delete the customresourcedefinitions of run dcx7k2p9q4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var asked []string
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				asked = append(asked, request.Method+" "+request.URL.Path)
				if request.Method == http.MethodPatch {
					_, _ = fmt.Fprint(writer, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.dcx7k2p9q4.example.io"}}`)
					return
				}
				if request.Method == http.MethodGet {
					g.Expect(request.URL.Query().Get("labelSelector")).To(Equal(client.RunLabel + "=dcx7k2p9q4"))
					writer.WriteHeader(test.listed)
					_, _ = fmt.Fprint(writer, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","items":[
						{"metadata":{"name":"things.dcx7k2p9q4.example.io","labels":{"`+client.RunLabel+`":"dcx7k2p9q4"},"finalizers":["`+client.Hold+`"]}},
						{"metadata":{"name":"copied.example.io","labels":{"`+client.RunLabel+`":"dcx7k2p9q4"}}},
						{"metadata":{"name":"of.others"}}]}`)
				}
			})

			teardown := cleanup{client: connected, run: "dcx7k2p9q4"}.start(time.Now())
			_, failed := teardown.clearClusterScoped(t.Context())
			failures := errors.Join(failed...)

			if test.want != "" {
				g.Expect(failures).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(failures).NotTo(HaveOccurred())
			if test.listed == http.StatusOK {
				g.Expect(asked).To(Equal([]string{"GET " + things, "PATCH " + things + "/things.dcx7k2p9q4.example.io", "DELETE " + things + "/things.dcx7k2p9q4.example.io", "GET /apis/storage.k8s.io/v1/volumeattachments"}), "and namespaces later")
			}
		})
	}
}

func TestFinishEmpty(t *testing.T) {
	for code, finalized := range map[int]bool{http.StatusOK: true, http.StatusForbidden: false, http.StatusBadRequest: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			g := NewWithT(t)
			var writes []string
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				if request.Method != http.MethodGet {
					writes = append(writes, request.Method+" "+request.URL.Path)
				}
				if strings.HasSuffix(request.URL.Path, "/secrets") && code != http.StatusOK {
					writer.WriteHeader(code)
					_, _ = fmt.Fprintf(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, map[int]string{403: "Forbidden"}[code])
					return
				}
				_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"List","items":[]}`)
			})
			namespace := fixtures.Namespace("dcx7k2p9q4-1")

			cleanup{client: connected, run: "dcx7k2p9q4"}.start(time.Now()).finishEmpty(t.Context(), namespace)

			g.Expect(slices.Contains(writes, "PUT /api/v1/namespaces/dcx7k2p9q4-1/finalize")).To(Equal(finalized), "%q", writes)
		})
	}
}

func TestRemainsError_NoTimeForAllResources(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		switch path := request.URL.Path; {
		case strings.HasSuffix(path, "/namespaces/dcx7k2p9q4-1"):
			_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"dcx7k2p9q4-1"},"status":{"conditions":[
				{"type":"NamespaceContentRemaining","status":"True","message":"Some resources are remaining: secrets. has 1 resource instances"}]}}`)
		case strings.HasSuffix(path, "/secrets"):
			_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"namespace":"dcx7k2p9q4-1","name":"a","finalizers":["a.io/b"]}}]}`)
		default:
			cancel()
		}
	})

	err := cleanup{client: connected, run: "dcx7k2p9q4"}.start(time.Now()).remainsError(ctx, fixtures.Namespace("dcx7k2p9q4-1"))

	g.Expect(ctx.Err()).To(HaveOccurred(), "other resources are listed, too")
	g.Expect(err).To(MatchError(And(ContainSubstring("secrets. has 1 resource instances"), ContainSubstring("Secret dcx7k2p9q4-1/a"), ContainSubstring("waits for finalizer a.io/b"))))
}
