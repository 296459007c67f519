package claims

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/test/e2e/aggregated"
)

// implementation is something that serves the API of Kubernetes.
type implementation struct {
	// name is the name of the project in the claim.
	name string
	// version returns its version, given the directory of the binaries of Kubernetes.
	version func(ctx context.Context, binaries string) (string, error)
	// start starts it and returns the runner's flags for it. The directory is for its files. The returned function stops it.
	start func(ctx context.Context, binaries, folder string) (flags []string, stop func() error, err error)
}

var implementations = []implementation{
	{"embedded-kubernetes-with-nodes", ofKubernetes, byRunner("--nodes", "2")},
	{"kube-apiserver-alone", ofKubernetes, byRunner("--without-controllers")},
	{"envtest", ofModule("sigs.k8s.io/controller-runtime", "go.mod"), startEnvtest},
	{"kwok", ofModule("sigs.k8s.io/kwok", "tools/go.mod"), startKWOK},
	{"sample-apiserver", ofModule("k8s.io/sample-apiserver", "tools/sample-apiserver/go.mod"), startSampleAPIServer},
	{kcp.name(), kcp.version, startKCP},
}

// ofKubernetes returns the version of Kubernetes, after which its directory is named.
func ofKubernetes(_ context.Context, binaries string) (string, error) {
	return strings.TrimPrefix(filepath.Base(binaries), "v"), nil
}

// ofModule returns the function for the version of a module in a go.mod.
func ofModule(module, file string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, _ string) (string, error) {
		return lab.ModuleVersion(ctx, module, file)
	}
}

func noop() error { return nil }

// byRunner returns the function for a cluster that the runner starts with these flags.
func byRunner(flags ...string) func(context.Context, string, string) ([]string, func() error, error) {
	return func(_ context.Context, binaries, _ string) ([]string, func() error, error) {
		return append([]string{"--provider", "embedded", "--kubernetes-binaries", binaries}, flags...), noop, nil
	}
}

// startEnvtest starts the control plane of controller-runtime's envtest.
func startEnvtest(_ context.Context, binaries, folder string) ([]string, func() error, error) {
	server := &envtest.Environment{BinaryAssetsDirectory: binaries}
	if _, err := server.Start(); err != nil {
		return nil, nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		return nil, nil, errors.Join(err, server.Stop())
	}
	return []string{"--kubeconfig", kubeconfig}, server.Stop, nil
}

// simulated marks the nodes that KWOK simulates.
const simulated = "kwok.x-k8s.io/node"

// startKWOK starts a cluster in which KWOK simulates a node.
func startKWOK(ctx context.Context, _, folder string) ([]string, func() error, error) {
	cluster, err := lab.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	end, err := simulateNode(ctx, cluster, folder)
	if err != nil {
		return nil, nil, errors.Join(err, cluster.Destroy())
	}
	return []string{"--kubeconfig", cluster.Kubeconfig()}, func() error { return errors.Join(end(), cluster.Destroy()) }, nil
}

// simulateNode creates a node and starts KWOK, which simulates it.
func simulateNode(ctx context.Context, cluster *embedded.Cluster, folder string) (stop func() error, err error) {
	client, err := clientset.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{simulated: "fake"}}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	address, _, err := lab.FreePort()
	if err != nil {
		return nil, err
	}
	return lab.Program{
		Binary: "bin/kwok", Folder: folder, Ready: "http://" + address + "/readyz", Arguments: []string{
			"--kubeconfig", cluster.Kubeconfig(), "--config", "test/platform/kwok/testdata/stages.yaml",
			"--manage-nodes-with-annotation-selector", simulated + "=fake", "--server-address", address,
		},
	}.Start(ctx)
}

// startSampleAPIServer starts a cluster with an aggregated API server.
func startSampleAPIServer(ctx context.Context, binaries, _ string) ([]string, func() error, error) {
	cluster, err := lab.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	server, err := aggregated.Start(ctx, cluster, "bin/sample-apiserver", filepath.Join(binaries, "etcd"))
	if err != nil {
		return nil, nil, errors.Join(err, cluster.Destroy())
	}
	stop := func() error { return errors.Join(server.Stop(), cluster.Destroy()) }
	return []string{"--kubeconfig", cluster.Kubeconfig(), "--resource", aggregated.Resources[0]}, stop, nil
}
