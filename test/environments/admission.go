package main

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// podSecurity makes the API server enforce a Pod Security level where a namespace sets none.
func podSecurity(folder string) ([]embedded.Option, error) {
	content, err := manifests.ReadFile("manifests/pod-security.yaml")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "admission.yaml")
	return []embedded.Option{embedded.WithAPIServerFlags("--admission-control-config-file=" + file)}, os.WriteFile(file, content, 0o600)
}

// awaitRefusal waits until a plain pod is refused.
func awaitRefusal(ctx context.Context, site *site) error { return site.awaitRefusal(ctx, plainPod()) }

// plainPod is a pod without labels, limits and an owner, in the namespace default.
func plainPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: metav1.NamespaceDefault},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:latest"}}},
	}
}
