// Package apiservertest is an API server for tests. It serves the discovery of a few kinds and passes all other requests to the test.
package apiservertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Start serves until the test ends. It returns the client configuration and the number of requests that the handler received.
func Start(t *testing.T, handler http.HandlerFunc) (*rest.Config, *atomic.Int32) {
	t.Helper()
	requests := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		if found, ok := discovery()[request.URL.Path]; ok {
			if err := json.NewEncoder(writer).Encode(found); err != nil {
				t.Errorf("answer %s: %v", request.URL.Path, err)
			}
			return
		}
		requests.Add(1)
		handler(writer, request)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, requests
}

// discovery maps paths to discovery documents.
func discovery() map[string]any {
	group := func(name string) metav1.APIGroup {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	}
	return map[string]any{
		"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{group("apps"), group("apiextensions.k8s.io"), group("authentication.k8s.io"), group("batch"), group("rbac.authorization.k8s.io"), group("storage.k8s.io")},
		},
		"/api/v1": resources("v1",
			resource("configmaps", "ConfigMap", true), resource("secrets", "Secret", true), resource("pods", "Pod", true),
			resource("resourcequotas", "ResourceQuota", true), resource("events", "Event", true),
			metav1.APIResource{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get", "patch", "update"}},
			metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
			resource("namespaces", "Namespace", false), resource("serviceaccounts", "ServiceAccount", true),
		),
		"/apis/apps/v1":  resources("apps/v1", resource("deployments", "Deployment", true), resource("replicasets", "ReplicaSet", true)),
		"/apis/batch/v1": resources("batch/v1", resource("jobs", "Job", true)),
		"/apis/apiextensions.k8s.io/v1": resources("apiextensions.k8s.io/v1",
			resource("customresourcedefinitions", "CustomResourceDefinition", false)),
		"/apis/rbac.authorization.k8s.io/v1": resources("rbac.authorization.k8s.io/v1",
			resource("roles", "Role", true), resource("rolebindings", "RoleBinding", true)),
		"/apis/storage.k8s.io/v1": resources("storage.k8s.io/v1", resource("volumeattachments", "VolumeAttachment", false)),
		"/apis/authentication.k8s.io/v1": resources("authentication.k8s.io/v1",
			metav1.APIResource{Name: "tokenreviews", Kind: "TokenReview", Verbs: metav1.Verbs{"create"}}),
	}
}

func resources(version string, all ...metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version, APIResources: all,
	}
}

func resource(name, kind string, namespaced bool) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{
		"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
	}}
}
