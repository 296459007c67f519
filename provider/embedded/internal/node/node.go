// Package node runs a real node for an embedded cluster: containerd, runc, CNI plugins and the kubelet, in a sandbox. Its processes,
// mounts, addresses and interfaces exist only in the sandbox and end with it, and the sandbox ends with the runner. Its control groups are
// named after the cluster's state directory. A container runtime or kubelet of the host is not affected, and nothing listens where another
// machine could reach it: traffic in and out passes through sockets in the state directory.
//
// It requires Linux, root, and containerd, runc, containernetworking-plugins and busybox-static as packaged by Debian.
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
	// address is the node's address. Every node has the same one, because each has its own network.
	address = "10.88.0.1"
	// podNetwork is the address range of its pods.
	podNetwork = "10.88.1.0/24"
	// dirName is the directory of the node in the state directory of the cluster.
	dirName = "node"
	// startTimeout is how long containerd may take to respond, and an image to be imported.
	startTimeout = 60 * time.Second
)

// The components of a node, by the names of their binaries.
const (
	Kubelet    = "kubelet"
	containerd = "containerd"
)

// ProxySocket is the socket in the state directory through which the API server reaches the node, by HTTP CONNECT.
func ProxySocket(cluster string) string { return filepath.Join(cluster, dirName, "in.sock") }

// Config configures a node.
type Config struct {
	// Name is the node's name in the cluster.
	Name string
	// Cluster is the state directory of the cluster, and Logs the directory of its logs.
	Cluster, Logs string
	// Binaries is the directory with the kubelet.
	Binaries string
	// APIServer is the address and port of the API server, which is the same on the node.
	APIServer string
	// Kubeconfig is the kubeconfig of the node.
	Kubeconfig string
	CA         *certificates.CA
	// Images are the names of the preloaded images, and Archives are files with others.
	Images   Images
	Archives []string
	// APIService is the address and port of the API server's Service.
	APIService string
}

// Node is a running node.
type Node struct {
	Config
	sandbox *sandbox.Sandbox
	// listeners are sockets in the state directory by which the node reaches the API server, and the API server the host's loopback.
	listeners []net.Listener
	kubelet   []string
}

// Start starts a node. It returns when the kubelet was started; the cluster reports when the node is ready. If it fails, only files in the
// state directory are left.
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
	apiProxy, err := n.listen("out.sock")
	if err != nil {
		return err
	}
	go sandbox.Forward(apiProxy, "tcp", n.APIServer)
	host, err := n.listen("host.sock")
	if err != nil {
		return err
	}
	go sandbox.Tunnel(host, sandbox.DialHost)
	n.sandbox, err = sandbox.Start(ctx, process.BaseEnvironment(n.Cluster), n.log("sandbox"), sandbox.Spec{
		Hostname: n.Name, Root: n.path("root"), Disk: n.path("disk"),
		Mounts: []string{n.Cluster}, ReadOnlyMounts: []string{n.Binaries},
		Address: address, Busybox: tools.busybox, Sysctls: kubeletSysctls(),
		APIServer: n.APIServer, APIService: n.APIService, APIProxySocket: apiProxy.Addr().String(),
		ProxySocket: ProxySocket(n.Cluster), HostSocket: host.Addr().String(),
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

// listen listens on a socket in the directory of the node until the node is destroyed.
func (n *Node) listen(name string) (net.Listener, error) {
	listener, err := net.Listen("unix", n.path(name))
	if err != nil {
		return nil, fmt.Errorf("listen for connections of the node: %w", err)
	}
	n.listeners = append(n.listeners, listener)
	return listener, nil
}

// StartKubelet starts the kubelet, also after StopKubelet. It has no effect while it runs.
func (n *Node) StartKubelet(ctx context.Context) error {
	return n.run(ctx, Kubelet, n.kubelet...)
}

// StopKubelet kills the kubelet, as a network partition would: containers keep running without supervision. The cluster notices it after
// its node monitor grace period (40 s, or 50 s since 1.32).
func (n *Node) StopKubelet(ctx context.Context) error {
	return n.sandbox.Stop(ctx, Kubelet)
}

// KubeletRuns reports whether the kubelet runs.
func (n *Node) KubeletRuns(ctx context.Context) (bool, error) { return n.sandbox.Runs(ctx, Kubelet) }

// Alive returns nil while everything runs that was started and not stopped.
func (n *Node) Alive(ctx context.Context) error { return n.sandbox.Alive(ctx) }

// Destroy ends every process of the node, and so its mounts and network, and removes its control groups. Its files are removed with the
// state directory.
func (n *Node) Destroy() error {
	var failures []error
	if n.sandbox != nil {
		n.sandbox.Kill()
	}
	for _, listener := range n.listeners {
		failures = append(failures, listener.Close())
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
