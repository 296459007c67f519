package claims

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
)

var kcp = source{
	repository: "https://github.com/kcp-dev/kcp", revision: "dac74f5955f1d4c703e87dd5cfecbc9a0a514643",
	// without the version of its Kubernetes, which its Makefile sets, too, it is tested like one older than all
	packages: []string{"-ldflags=-X k8s.io/component-base/version.gitVersion=v1.36.0+kcp", "./cmd/kcp"},
}

// startKCP builds and starts kcp with its own etcd, and creates a workspace for the run.
func startKCP(ctx context.Context, _, folder string) ([]string, func() error, error) {
	binary, err := kcp.build(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("build kcp: %w", err)
	}
	arguments := []string{"start", "--root-directory", folder, "--bind-address", "127.0.0.1"}
	var address string
	for _, flag := range []string{"--embedded-etcd-client-port", "--embedded-etcd-peer-port", "--secure-port"} {
		free, port, err := lab.FreePort()
		if err != nil {
			return nil, nil, err
		}
		address, arguments = free, append(arguments, fmt.Sprintf("%s=%d", flag, port))
	}
	stop, err := lab.Program{Binary: binary, Folder: folder, Ready: "https://" + address + "/readyz", Arguments: arguments}.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	kubeconfig := filepath.Join(folder, "admin.kubeconfig")
	if err := useWorkspace(ctx, kubeconfig); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return []string{"--kubeconfig", kubeconfig}, stop, nil
}

// workspaceReady limits how long kcp may take to prepare a workspace.
const workspaceReady = time.Minute

// useWorkspace creates a workspace below root, and selects it in the kubeconfig. All users may access it, as far as Roles there permit.
func useWorkspace(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	config.CurrentContext = "root"
	root, err := connect(config)
	if err != nil {
		return err
	}
	workspace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": map[string]any{"name": "conformance"},
	}}
	if err := root.Create(ctx, workspace); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, workspaceReady, true, func(ctx context.Context) (bool, error) {
		err := root.Get(ctx, client.ObjectKeyFromObject(workspace), workspace)
		phase, _, _ := unstructured.NestedString(workspace.Object, "status", "phase")
		return phase == "Ready", err
	})
	if err != nil {
		return fmt.Errorf("workspace %q is not ready: %w", workspace.GetName(), err)
	}
	config.Clusters["root"].Server, _, _ = unstructured.NestedString(workspace.Object, "spec", "URL")
	inside, err := connect(config)
	if err != nil {
		return err
	}
	const access = "system:kcp:workspace:access" // is a ClusterRole of every workspace
	if err := inside.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: access}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: access},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// connect returns a client of the current context.
func connect(config *clientcmdapi.Config) (client.Client, error) {
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return client.New(rest, client.Options{})
}
