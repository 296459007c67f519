package embedded

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

// Images are the names of the images that pods on a local node can run.
type Images = node.Images

// SandboxCommand is the name by which a program that creates nodes starts itself again; its reexec.Init must call Sandbox then.
const SandboxCommand = sandbox.Subcommand

// Sandbox makes this process the first one of a node, until its input ends.
func Sandbox(input io.ReadCloser, output io.WriteCloser) error { return sandbox.Main(input, output) }

// NodeSupported is nil when this machine can have a real node; otherwise it says in one line why not: it is not Linux,
// the user is not root, or something is not installed.
func NodeSupported() error { return node.Supported() }

// egress is how the API server finds its way to the node: through a socket, as the node has no interface on this host.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// apiServerNodeFlags make the API server reach the kubelet (for logs, exec and the like), and the kubelet know it, if
// there is a node.
func (c *instance) apiServerNodeFlags() ([]string, error) {
	if c.settings.node == nil {
		return nil, nil
	}
	config, err := c.dir.Write("egress.yaml", fmt.Appendf(nil, egress, node.ProxySocket(c.dir.Path())))
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

// startNode starts the node. It joins the cluster by itself.
func (c *instance) startNode(ctx context.Context, name string) error {
	kubeconfig, err := c.writeKubeconfig("", "system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	c.node, err = node.Start(ctx, node.Config{
		Name: name, Cluster: c.dir.Path(), Logs: c.dir.Path(logDir), Binaries: c.binaries,
		APIServer: c.apiServerAddress(), Kubeconfig: kubeconfig, CA: c.ca, Images: *c.settings.node,
	})
	return err
}

// nodeReady is nil when pods can be scheduled on the node, or its kubelet was stopped.
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
		return fmt.Errorf("look for the node: %w", err)
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
