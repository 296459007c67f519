package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
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

// egress makes the API server reach the nodes through a socket, because they have no interface on the host. See serveEgress.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// apiServerNodeFlags connect the API server with the kubelet (for logs and exec) and authenticate it, if there are nodes.
func (c *instance) apiServerNodeFlags() ([]string, error) {
	if c.settings.nodes == 0 {
		return nil, nil
	}
	config, err := c.dir.Write("egress.yaml", fmt.Appendf(nil, egress, c.dir.Path(egressSocket)))
	if err != nil {
		return nil, err
	}
	if err := c.serveEgress(); err != nil {
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

// nodeList returns the nodes that were started.
func (c *instance) nodeList() []*node.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// controllerNodeFlags make the controller manager notice a lost node soon, if there is another one for its pods. By default it takes 50 s.
// A kubelet renews its lease every 5 s.
func (c *instance) controllerNodeFlags() []string {
	if c.settings.nodes < MaxNodes {
		return nil
	}
	return []string{"--node-monitor-grace-period=20s"}
}

// startNodes starts the nodes in parallel. They register themselves.
func (c *instance) startNodes(ctx context.Context) error {
	var starting sync.WaitGroup
	failures, started := make([]error, c.settings.nodes), make([]*node.Node, c.settings.nodes)
	for i := range started {
		starting.Go(func() { started[i], failures[i] = c.startNode(ctx, i+1) })
	}
	starting.Wait()
	c.mu.Lock()
	c.nodes = slices.DeleteFunc(started, func(n *node.Node) bool { return n == nil })
	c.mu.Unlock()
	if err := errors.Join(failures...); err != nil || len(started) == 0 {
		return err
	}
	return c.connectNodes(started[0])
}

// startNode starts a node.
func (c *instance) startNode(ctx context.Context, number int) (*node.Node, error) {
	name := fmt.Sprintf("%s-node-%d", c.name, number)
	kubeconfig, err := c.writeKubeconfig("", "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	return node.Start(ctx, node.Config{
		Name: name, Number: number, Cluster: c.dir.Path(), Logs: c.dir.Path(logDir), Binaries: c.binaries,
		APIServer: c.apiServerAddress(), Kubeconfig: kubeconfig, CA: c.ca, Images: c.settings.images, Archives: c.settings.archives,
		APIService: net.JoinHostPort(kubernetesService, "443"),
	})
}

// connectNodes connects the network of a node with those of the other running nodes.
func (c *instance) connectNodes(started *node.Node) error {
	for _, other := range c.nodeList() {
		if other == started || !other.Runs() {
			continue
		}
		if err := node.Connect(started, other); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns what can be stopped and started of a node.
func (c *instance) partsOf(node *node.Node) map[component.Component]component.Switch {
	return map[component.Component]component.Switch{
		component.Kubelet: {Stop: node.StopKubelet, Start: c.thenAwaitReady(node.StartKubelet)},
		component.Runtime: {Stop: node.StopContainerd, Start: c.thenAwaitReady(node.StartContainerd)},
		component.Machine: {Stop: node.Lose, Start: c.thenAwaitReady(func(ctx context.Context) error { return c.replace(ctx, node) })},
		component.InService: {
			Stop:  func(ctx context.Context) error { return c.taint(ctx, node.Name, outOfService) },
			Start: func(ctx context.Context) error { return c.taint(ctx, node.Name) },
		},
	}
}

// replace replaces a lost machine by a new one.
func (c *instance) replace(ctx context.Context, lost *node.Node) error {
	if lost.Runs() {
		return nil
	}
	if err := lost.Replace(ctx); err != nil {
		return err
	}
	return c.connectNodes(lost)
}

// outOfService is the taint of a node whose pods will not run again, as Kubernetes' documentation recommends it.
var outOfService = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// taint replaces the taint for nodes that are out of service, if any.
func (c *instance) taint(ctx context.Context, name string, taints ...corev1.Taint) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	nodes := client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Spec.Taints = slices.DeleteFunc(found.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == outOfService.Key })
		found.Spec.Taints = append(found.Spec.Taints, taints...)
		_, err = nodes.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
}

// nodeReady returns nil when pods can be scheduled on a node, or its kubelet was stopped.
func (c *instance) nodeReady(ctx context.Context, node *node.Node) error {
	if runs, err := node.KubeletRuns(ctx); err != nil || !runs {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
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
