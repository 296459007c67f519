package environments

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/faults"
)

// flags configures kube-apiserver.
func flags(flags ...string) func(string) ([]embedded.Option, error) {
	return func(string) ([]embedded.Option, error) {
		return []embedded.Option{embedded.WithAPIServerFlags(flags...)}, nil
	}
}

// onlyIPv6 is a part that checks that Services get addresses of IPv6.
func onlyIPv6(ctx context.Context, site *site) error {
	service := &corev1.Service{}
	if err := site.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service); err != nil {
		return err
	}
	if !strings.Contains(service.Spec.ClusterIP, ":") {
		return fmt.Errorf("the address of Service %q is %s", service.Name, service.Spec.ClusterIP)
	}
	return nil
}

// deleteBasicUser is a part that deletes the permission of users to review their own access, as hardened clusters do.
func deleteBasicUser(ctx context.Context, site *site) error {
	return site.await(ctx, "the ClusterRoleBinding remains", func(ctx context.Context) error {
		return site.client.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system:basic-user"}})
	})
}

// heartbeats is how often the kubelet of a node reports that it is Ready.
const heartbeats = 10 * time.Second

// beReady keeps the nodes of manifests/nodes.yaml Ready, as their kubelets would.
func beReady(ctx context.Context, c client.Client, node *corev1.Node) (time.Duration, error) {
	if node.Labels["example.com/closed"] == "" {
		return 0, nil
	}
	now := metav1.Now()
	for _, condition := range node.Status.Conditions {
		if left := heartbeats - now.Sub(condition.LastHeartbeatTime.Time); condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && left > 0 {
			return left, nil
		}
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now}}
	node.Status.NodeInfo.ContainerRuntimeVersion = "containerd://2.0.0"
	node.Status.Allocatable = amounts("4", "8Gi")
	if node.Labels["example.com/closed"] != "full" {
		node.Status.Allocatable[corev1.ResourcePods] = amounts("110", "0")[corev1.ResourceCPU]
	}
	node.Status.Capacity = node.Status.Allocatable
	return heartbeats, c.Status().Update(ctx, node)
}

// throughProxy is a part that leads the run through a proxy of a server that does not have everything.
func throughProxy(lacks func(path []string) bool) part {
	return func(_ context.Context, site *site) error {
		forward, err := faults.Forward(site.cluster.RESTConfig())
		if err != nil {
			return err
		}
		proxy := httptest.NewServer(faults.Hiding(forward, lacks))
		site.onStop(func() error {
			proxy.CloseClientConnections()
			proxy.Close()
			return nil
		})
		site.kubeconfig = filepath.Join(site.folder, "kubeconfig")
		return os.WriteFile(site.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: proxy
clusters: [{name: proxy, cluster: {server: %q}}]
contexts: [{name: proxy, context: {cluster: proxy, user: proxy}}]
users: [{name: proxy, user: {token: any}}]
`, proxy.URL), 0o600)
	}
}

// kubePublic reports whether a path is that of the namespace kube-public.
func kubePublic(path []string) bool {
	return len(path) >= 4 && slices.Equal(path[:4], []string{"api", "v1", "namespaces", metav1.NamespacePublic})
}

// The resources of the core group and the other groups that kcp serves in a workspace, besides those of CustomResourceDefinitions.
var (
	controlPlaneResources = []string{"configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"}
	controlPlaneGroups    = []string{
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
		"certificates.k8s.io", "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io",
	}
)

// isNotServedByKCP reports whether a path is that of a resource that kcp does not serve.
func isNotServedByKCP(path []string) bool {
	switch {
	case len(path) < 2, path[0] == "api" && len(path) == 2:
		return false
	case path[1] == "certificates.k8s.io" && len(path) > 3:
		return !slices.Contains(path, "certificatesigningrequests")
	case path[0] == "apis":
		return !slices.Contains(controlPlaneGroups, path[1]) && (strings.HasSuffix(path[1], ".k8s.io") || !strings.Contains(path[1], "."))
	case path[0] != "api":
		return false
	case len(path) > 4 && path[2] == "namespaces" && path[4] != "status" && path[4] != "finalize":
		return !slices.Contains(controlPlaneResources, path[4])
	}
	return !slices.Contains(controlPlaneResources, path[2])
}
