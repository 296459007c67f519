// Package node is a real node for a local cluster: containerd, runc, CNI plugins and the kubelet, in a sandbox. Its
// processes, mounts, addresses and interfaces exist only there and end with the sandbox, which ends with the runner;
// its control groups bear the name of the cluster's state directory. Nothing of a container runtime or a kubelet that
// the host already runs is seen or touched, and nothing listens where another machine could reach it: the way in and
// the way out are sockets in the state directory.
//
// It needs Linux, root, and containerd, runc, containernetworking-plugins and busybox-static as Debian packages them.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/certificates"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

const (
	// address is the node's address. Every node has the same: nobody else is on its network.
	address = "10.88.0.1"
	// podNetwork are the addresses of its pods.
	podNetwork = "10.88.1.0/24"
	// dirName is the directory of the node in the state directory of the cluster.
	dirName = "node"
	// startTimeout is how long containerd may take to answer, and an image to be imported.
	startTimeout = 60 * time.Second
)

// The components of a node, by the names of their binaries.
const (
	Kubelet    = "kubelet"
	containerd = "containerd"
)

// ProxySocket is the socket in the state directory through which the API server reaches the node, by HTTP CONNECT.
func ProxySocket(cluster string) string { return filepath.Join(cluster, dirName, "in.sock") }

// Config says what a node is to be like.
type Config struct {
	// Name is the node's name in the cluster.
	Name string
	// Cluster is the state directory of the cluster, and Logs the directory of its logs.
	Cluster, Logs string
	// Binaries is the directory with the kubelet.
	Binaries string
	// APIServer is the address and port of the API server, which has the same address on the node.
	APIServer string
	// Kubeconfig is the node's own.
	Kubeconfig string
	CA         *certificates.CA
	// Images are the names of the images that are there from the start.
	Images Images
}

// Node is a node that runs.
type Node struct {
	Config
	sandbox  *sandbox.Sandbox
	apiProxy net.Listener // joins a socket in the state directory with the API server, which the node cannot reach
	kubelet  []string
}

// Start starts a node. It returns when the kubelet was started; the cluster says when it is ready. When it fails,
// nothing is left but files in the state directory.
func Start(ctx context.Context, config Config) (*Node, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	node := &Node{Config: config}
	if err := node.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", config.Name, err), node.Destroy())
	}
	return node, nil
}

func (n *Node) start(ctx context.Context) error {
	tools, err := findTools()
	if err != nil {
		return err
	}
	if err := makeDirs(n.path("root"), n.path("disk")); err != nil {
		return err
	}
	if err := makeCgroups(n.cgroup()); err != nil {
		return err
	}
	apiProxySocket := n.path("out.sock")
	if n.apiProxy, err = net.Listen("unix", apiProxySocket); err != nil {
		return fmt.Errorf("listen for the node's requests to the API server: %w", err)
	}
	go sandbox.Forward(n.apiProxy, "tcp", n.APIServer)
	n.sandbox, err = sandbox.Start(ctx, process.BaseEnvironment(n.Cluster), n.log("sandbox"), sandbox.Spec{
		Hostname: n.Name, Root: n.path("root"), Disk: n.path("disk"),
		Mounts: []string{n.Cluster}, ReadOnlyMounts: []string{n.Binaries},
		Address: address, Busybox: tools.busybox, Sysctls: kubeletSysctls(),
		APIServer: n.APIServer, APIProxySocket: apiProxySocket, ProxySocket: ProxySocket(n.Cluster),
	})
	if err != nil {
		return err
	}
	if err := n.startContainerd(ctx, tools); err != nil {
		return err
	}
	if n.kubelet, err = n.kubeletCommand(); err != nil {
		return err
	}
	return n.StartKubelet(ctx)
}

// StartKubelet starts the kubelet, also again after StopKubelet. Nothing happens if it runs.
func (n *Node) StartKubelet(ctx context.Context) error {
	return n.run(ctx, Kubelet, n.kubelet...)
}

// StopKubelet kills the kubelet, as if the node were cut off: containers keep running, and nobody looks after them. The
// cluster notices after its node monitor's grace period (40 s, or 50 s since 1.32).
func (n *Node) StopKubelet(ctx context.Context) error {
	return n.sandbox.Stop(ctx, Kubelet)
}

// KubeletRuns says whether the kubelet runs.
func (n *Node) KubeletRuns(ctx context.Context) (bool, error) { return n.sandbox.Runs(ctx, Kubelet) }

// Alive is nil while everything that was started, and not stopped, runs.
func (n *Node) Alive(ctx context.Context) error { return n.sandbox.Alive(ctx) }

// Destroy ends every process of the node, and with them its mounts and network, and removes its control groups. Its
// files are left to whoever removes the state directory.
func (n *Node) Destroy() error {
	var failures []error
	if n.sandbox != nil {
		n.sandbox.Kill()
	}
	if n.apiProxy != nil {
		failures = append(failures, n.apiProxy.Close())
	}
	return errors.Join(append(failures, removeCgroups(n.cgroup()))...)
}

// Sweep removes what a node leaves on the host when its runner is killed: empty control groups.
func Sweep(cluster string) error { return removeCgroups(filepath.Base(cluster)) }

// run runs a component on the node until it is stopped.
func (n *Node) run(ctx context.Context, name string, command ...string) error {
	return n.sandbox.Run(ctx, sandbox.Command{
		Name: name, Arguments: command, Environment: process.BaseEnvironment(n.Cluster), Log: n.log(name),
	})
}

// cgroup is the name of the node's control groups.
func (n *Node) cgroup() string { return filepath.Base(n.Cluster) }

func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.Cluster, dirName}, elements...)...)
}

func (n *Node) log(name string) string { return filepath.Join(n.Logs, name+".log") }
