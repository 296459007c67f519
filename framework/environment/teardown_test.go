package environment

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

func TestWebhooksAreRemovedFirstAndPermissionsLast(t *testing.T) {
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

func TestANamespaceIsFinalizedAtOnceOnlyWhereNoControllersAre(t *testing.T) {
	absent := "nobody answered"
	for _, test := range []struct {
		name        string
		unsupported map[v1alpha1.Need]string
		unprobed    bool
		pace        Pace
		want        time.Duration
	}{
		{"all controllers", nil, false, Pace{}, busyTime},
		{"no collector only", map[v1alpha1.Need]string{v1alpha1.GC: absent}, false, Pace{}, busyTime},
		{"no other controllers only", map[v1alpha1.Need]string{v1alpha1.KCM: absent}, false, Pace{}, busyTime},
		{"none", map[v1alpha1.Need]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, false, Pace{}, 0},
		{"nobody knows", map[v1alpha1.Need]string{v1alpha1.GC: absent, v1alpha1.KCM: absent}, true, Pace{}, unattendedTime},
		{"slow ones", nil, false, Pace{Controller: 4 * promptController}, 4 * busyTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment := &Environment{unsupported: test.unsupported, unprobed: test.unprobed, pace: test.pace}
			if got := environment.unattendedAfter(); got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
		})
	}
}

func TestTeardownTakesTheTimeThatASlowClusterNeeds(t *testing.T) {
	g := NewWithT(t)
	g.Expect((&Environment{}).slowed(teardownTimeout)).To(Equal(90 * time.Second))
	g.Expect((&Environment{pace: Pace{Read: 4 * promptRead}}).slowed(teardownTimeout)).To(Equal(6 * time.Minute))
}

func TestANamespaceIsFinalizedOnceOnlyASpecHoldsIt(t *testing.T) {
	g := NewWithT(t)
	for _, test := range []struct {
		finalizers []string
		want       bool
	}{
		{[]string{"kubernetes"}, false},
		{[]string{"a.io/b", "kubernetes"}, false},
		{[]string{"a.io/b"}, true},
		{nil, false},
	} {
		namespace := fixtures.Namespace("dc-1")
		g.Expect(unstructured.SetNestedStringSlice(namespace.Object, test.finalizers, "spec", "finalizers")).To(Succeed())
		g.Expect(isHeldBySpec(namespace)).To(Equal(test.want), "%q", test.finalizers)
	}
}

func TestWhyANamespaceStays(t *testing.T) {
	g := NewWithT(t)
	namespace := fixtures.Namespace("dc-1")
	g.Expect(whyNamespaceStays(client.Response{Object: namespace})).To(Equal("nothing is said to hold it"))
	conditions := []any{
		map[string]any{"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"},
		map[string]any{"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all is well"},
		map[string]any{"type": "NamespaceFinalizersRemaining", "status": "True", "message": "a.io/b in 1 resource instances"},
	}
	g.Expect(unstructured.SetNestedSlice(namespace.Object, conditions, "status", "conditions")).To(Succeed())
	g.Expect(whyNamespaceStays(client.Response{Object: namespace})).To(Equal("pods. has 1 resource instances; a.io/b in 1 resource instances"))
	g.Expect(whyNamespaceStays(client.Response{Err: errors.New("not allowed")})).To(Equal("not allowed"))
}

func TestClusterScopedLeftoversAreFoundByLabel(t *testing.T) {
	const things = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, test := range []struct {
		name   string
		listed int
		want   string
	}{
		{"they may be looked at", http.StatusOK, ""},
		{"what may not be looked at was not made", http.StatusForbidden, ""},
		{"they could not be looked at", http.StatusBadRequest, "remove the customresourcedefinitions of run dc1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var asked []string
			connected, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				asked = append(asked, request.Method+" "+request.URL.Path)
				if request.Method == http.MethodPatch {
					_, _ = fmt.Fprint(writer, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.io"}}`)
					return
				}
				if request.Method == http.MethodGet {
					g.Expect(request.URL.Query().Get("labelSelector")).To(Equal(client.RunLabel + "=dc1"))
					writer.WriteHeader(test.listed)
					_, _ = fmt.Fprint(writer, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","items":[
						{"metadata":{"name":"things.example.io","labels":{"`+client.RunLabel+`":"dc1"},"finalizers":["a.io/b"]}},
						{"metadata":{"name":"of.others"}}]}`)
				}
			})

			failures := errors.Join(clearClusterScoped(t.Context(), connected, "dc1")...)

			if test.want != "" {
				g.Expect(failures).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(failures).NotTo(HaveOccurred())
			if test.listed == http.StatusOK {
				g.Expect(asked).To(Equal([]string{"GET " + things, "DELETE " + things + "/things.example.io", "PATCH " + things + "/things.example.io"}), "and namespaces later")
			}
		})
	}
}
