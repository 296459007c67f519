package environments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// podSecurity makes the API server enforce a Pod Security level in namespaces that set none.
func podSecurity(folder string) ([]embedded.Option, error) {
	content, err := manifests.ReadFile("manifests/pod-security.yaml")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "admission.yaml")
	return []embedded.Option{embedded.WithAPIServerFlags("--admission-control-config-file=" + file)}, os.WriteFile(file, content, 0o600)
}

// realNode gives the cluster a node that runs pods.
func realNode(string) ([]embedded.Option, error) {
	if err := embedded.NodeSupported(); err != nil {
		return nil, err
	}
	return []embedded.Option{embedded.WithNodes(1, embedded.Images{
		Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
	})}, nil
}

// refuses is a part that waits until the cluster rejects an object with a message that contains the words, which shows that the policies
// are in force.
func refuses(object client.Object, words ...string) part {
	return func(ctx context.Context, site *site) error {
		return site.await(ctx, "what was installed is not in force", func(ctx context.Context) error {
			err := site.client.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
			if err == nil {
				return errors.New("the cluster accepts what must be refused")
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					return fmt.Errorf("the refusal does not name %q: %w", word, err)
				}
			}
			return nil
		})
	}
}

// plainPod is a pod without labels, limits and an owner, in the namespace default.
func plainPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:latest"}}},
	}
}

// nodePort is a Service of type NodePort in the namespace default.
func nodePort() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// plainNamespace is a namespace without labels.
func plainNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
}
