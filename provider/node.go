package provider

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/deletion-conformance/deletion-conformance/provider/internal/node"
)

// Images are the names of the images that pods on a local node can run.
type Images = node.Images

var _ support.E2EClusterProviderWithLifeCycle = &Local{}

// NodeSupported is nil when this machine can have a real node; otherwise it says in one line why not: it is not Linux,
// the user is not root, or something is not installed.
func NodeSupported() error { return node.Supported() }

// StopNode cuts the node off by killing its kubelet: its containers keep running, and nobody looks after them. The
// cluster notices after its node monitor's grace period (40 s, or 50 s since 1.32). A nil node is the only one there is.
func (l *Local) StopNode(ctx context.Context, which *support.Node, args ...string) error {
	found, err := l.findNode(which, args)
	if err != nil {
		return fmt.Errorf("stop the node: %w", err)
	}
	return found.StopKubelet(ctx)
}

// StartNode starts the kubelet again and waits until the node is ready. A nil node is the only one there is.
func (l *Local) StartNode(ctx context.Context, which *support.Node, args ...string) error {
	found, err := l.findNode(which, args)
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	if err := found.StartKubelet(ctx); err != nil {
		return err
	}
	return l.running.waitUntilReady(ctx)
}

// ListNode lists the node, if there is one. Its state is "running" or "stopped".
func (l *Local) ListNode(context.Context, ...string) ([]support.Node, error) {
	cluster, err := l.cluster()
	if err != nil || cluster.node == nil {
		return nil, err
	}
	state := "stopped"
	if cluster.node.Running() {
		state = "running"
	}
	return []support.Node{{
		Name: cluster.node.Name, Role: "worker", Cluster: l.name, State: state, IP: net.ParseIP(node.Address),
	}}, nil
}

// AddNode refuses: a local cluster has the node it was made with.
func (l *Local) AddNode(context.Context, *support.Node, ...string) error {
	return errors.New("add a node: a local cluster has the node it was made with, or none")
}

// RemoveNode refuses: a local cluster has the node it was made with.
func (l *Local) RemoveNode(context.Context, *support.Node, ...string) error {
	return errors.New("remove a node: a local cluster has the node it was made with, or none")
}

// findNode is the node of the cluster, if it is the one that is meant.
func (l *Local) findNode(which *support.Node, args []string) (*node.Node, error) {
	cluster, err := l.cluster()
	switch {
	case err != nil:
		return nil, err
	case cluster.node == nil:
		return nil, fmt.Errorf("the local cluster %q has none: make it with provider.WithNode", l.name)
	case which != nil && which.Name != cluster.node.Name:
		return nil, fmt.Errorf("the local cluster %q has no node %q, only %q", l.name, which.Name, cluster.node.Name)
	case len(args) > 0:
		return nil, errors.New("it takes no arguments")
	}
	return cluster.node, nil
}

// egress is how the API server finds its way to the node: through a socket, as the node has no interface on this host.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// showWayToNode makes the API server reach the kubelet (for logs, exec and the like), and vice versa know it.
func (c *localCluster) showWayToNode(arguments *envtest.Arguments) error {
	config, err := c.folder.Write("egress.yaml", fmt.Appendf(nil, egress, node.Entrance(c.folder.Path())))
	if err != nil {
		return err
	}
	pair, err := c.authority.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	certificate, key, err := c.authority.Write("kubelet-client", pair)
	if err != nil {
		return err
	}
	arguments.
		Set("egress-selector-config-file", config).
		Set("kubelet-certificate-authority", c.authority.File()).
		Set("kubelet-client-certificate", certificate).
		Set("kubelet-client-key", key).
		Set("kubelet-preferred-address-types", string(corev1.NodeInternalIP))
	return nil
}

// startNode starts the node. It joins the cluster by itself.
func (c *localCluster) startNode(ctx context.Context, name string) error {
	kubeconfig, err := c.writeKubeconfig("", "system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	serving := c.plane.APIServer.SecureServing
	c.node, err = node.Start(ctx, node.Config{
		Name: name, Cluster: c.folder.Path(), Logs: c.folder.Path(logFolder), Binaries: c.binaries,
		APIServer: net.JoinHostPort(serving.Address, serving.Port), Kubeconfig: kubeconfig,
		Authority: c.authority, Images: *c.settings.node,
	})
	return err
}

// nodeReady is nil when pods can be scheduled on the node.
func (c *localCluster) nodeReady(ctx context.Context) error {
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
