package embedded

import (
	"context"
	"fmt"
	"io"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

// Images are the names of the preloaded images of an embedded node.
type Images = node.Images

// SandboxCommand is the argument with which a program that creates nodes starts itself again; its reexec.Init must then call Sandbox.
const SandboxCommand = sandbox.Subcommand

// Sandbox makes this process the first one of a node, until its input ends.
func Sandbox(input io.ReadCloser, output io.WriteCloser) error { return sandbox.Main(input, output) }

// NodeSupported returns nil when this machine can run a real node. Otherwise the error contains the reason in one line: not Linux, not
// root, or a missing program.
func NodeSupported() error { return node.Supported() }

// egress makes the API server reach the node through a socket, because the node has no interface on the host. See services.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// apiServerNodeFlags connect the API server with the kubelet (for logs, exec and others) and authenticate it, if there is a node.
func (c *instance) apiServerNodeFlags() ([]string, error) {
	if c.settings.node == nil {
		return nil, nil
	}
	socket, err := c.serveServices()
	if err != nil {
		return nil, err
	}
	config, err := c.dir.Write("egress.yaml", fmt.Appendf(nil, egress, socket))
	if err != nil {
		return nil, err
	}
	pair, err := c.ca.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	certificate, key, err := c.ca.Write("kubelet-client", pair)
	if err != nil {
		return nil, err
	}
	return []string{
		"--egress-selector-config-file=" + config,
		"--kubelet-certificate-authority=" + c.ca.File(),
		"--kubelet-client-certificate=" + certificate,
		"--kubelet-client-key=" + key,
		"--kubelet-preferred-address-types=" + string(corev1.NodeInternalIP),
	}, nil
}

// startNode starts the node, which registers itself.
func (c *instance) startNode(ctx context.Context, name string) error {
	kubeconfig, err := c.writeKubeconfig("", "system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	c.node, err = node.Start(ctx, node.Config{
		Name: name, Cluster: c.dir.Path(), Logs: c.dir.Path(logDir), Binaries: c.binaries,
		APIServer: c.apiServerAddress(), Kubeconfig: kubeconfig, CA: c.ca, Images: *c.settings.node, Archives: c.settings.archives,
		APIService: net.JoinHostPort(kubernetesService, "443"),
	})
	return err
}

// nodeReady returns nil when pods can be scheduled on the node, or its kubelet was stopped.
func (c *instance) nodeReady(ctx context.Context) error {
	if runs, err := c.node.KubeletRuns(ctx); err != nil || !runs {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	found, err := client.CoreV1().Nodes().Get(ctx, c.node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the node: %w", err)
	}
	for _, taint := range found.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("node %s has the taint %s", found.Name, taint.Key)
		}
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node %s is not ready", found.Name)
}
