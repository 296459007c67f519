package aggregated

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	group     = "wardle.example.com"
	namespace = metav1.NamespaceDefault
	service   = "sample-apiserver"
	// available limits how long the cluster may take to serve the API.
	available = time.Minute
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// register registers the server's API in the cluster, and waits until it is served. The cluster's API server reaches a Service of type
// ExternalName by that name, which is this machine; a cluster IP would not work without a kube-proxy.
func (s *Server) register(ctx context.Context, config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	alias := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if _, err := clients.CoreV1().Services(namespace).Create(ctx, alias, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		created, err := objects.Resource(apiServices).Create(ctx, s.apiService(version), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := awaitAvailable(ctx, objects, created); err != nil {
			return err
		}
	}
	return nil
}

// apiService returns the APIService of one version of the server's API.
func (s *Server) apiService(version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiServices.GroupVersion().String(),
		"kind":       "APIService",
		"metadata":   map[string]any{"name": version + "." + group},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"service":               map[string]any{"namespace": namespace, "name": service, "port": int64(s.port)},
			"insecureSkipTLSVerify": true, // the server generates its certificate
		},
	}}
}

// awaitAvailable waits until an APIService is available.
func awaitAvailable(ctx context.Context, objects dynamic.Interface, created *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, available)
	defer cancel()
	last := created.Object
	_, err := watchtools.Until(ctx, created.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, created.GetName()).String()
			return objects.Resource(apiServices).Watch(ctx, options)
		},
	}, func(event watch.Event) (bool, error) {
		seen, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		last = seen.Object
		return isAvailable(last), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w: %v", created.GetName(), err, last["status"])
	}
	return nil
}

func isAvailable(apiService map[string]any) bool {
	conditions, _, _ := unstructured.NestedSlice(apiService, "status", "conditions")
	for _, condition := range conditions {
		if of, ok := condition.(map[string]any); ok && of["type"] == "Available" {
			return of["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
