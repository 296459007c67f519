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
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/sandbox"
)

const (
	// address is the address of a node by its number. Nodes of several clusters have the same ones, because each cluster has its own
	// networks.
	address = "10.88.0.%d"
	// podNetwork is the address range of its pods.
	podNetwork = "10.88.%d.0/24"
	// dirName is the directory of the node in the state directory of the cluster.
	dirName = "node-%d"
	// startTimeout is how long containerd may take to respond, and an image to be imported.
	startTimeout = 60 * time.Second
)

// The components of a node, by the names of their binaries.
const (
	Kubelet    = "kubelet"
	containerd = "containerd"
)

// The sockets in the directory of a node: from the host to its addresses, and from it to the API server.
const (
	inSocket  = "in.sock"
	outSocket = "out.sock"
)

// Config configures a node.
type Config struct {
	// Name is the node's name in the cluster, and Number its number there: 1 for the first.
	Name   string
	Number int
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

// Node is a node that was started. Its methods are safe for concurrent use, except that only one may change it at a time.
type Node struct {
	Config
	kubelet, containerd []string

	mu sync.Mutex
	// sandbox is nil while the node is lost.
	sandbox *sandbox.Sandbox
	// apiProxy is the socket in the directory of the node by which it reaches the API server.
	apiProxy net.Listener
}

// Start starts a node. It returns when the kubelet was started; the cluster reports when the node is ready. If it fails, only files in the
// state directory are left.
func Start(ctx context.Context, config Config) (*Node, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	node := &Node{Config: config}
	if err := node.Replace(ctx); err != nil {
		return nil, err
	}
	return node, nil
}

// Replace starts a new machine under the name of a node that was lost. It has no effect while the node runs.
func (n *Node) Replace(ctx context.Context) error {
	if n.Runs() {
		return nil
	}
	if err := n.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start node %s: %w", n.Name, err), n.Destroy())
	}
	return nil
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
	if err := n.open(ctx, tools); err != nil {
		return err
	}
	if err := n.prepareContainerd(ctx, tools); err != nil {
		return err
	}
	if n.kubelet, err = n.kubeletCommand(); err != nil {
		return err
	}
	return n.StartKubelet(ctx)
}

// open starts the sandbox.
func (n *Node) open(ctx context.Context, tools tools) error {
	apiProxy, err := net.Listen("unix", n.path(outSocket))
	if err != nil {
		return fmt.Errorf("listen for connections of the node: %w", err)
	}
	go sandbox.Forward(apiProxy, "tcp", n.APIServer)
	started, err := sandbox.Start(ctx, process.BaseEnvironment(n.Cluster), n.log("sandbox"), sandbox.Spec{
		Hostname: n.Name, Root: n.path("root"), Disk: n.path("disk"),
		Mounts: []string{n.Cluster}, ReadOnlyMounts: []string{n.Binaries},
		Address: n.address(), Busybox: tools.busybox, Sysctls: kubeletSysctls(),
		APIServer: n.APIServer, APIService: n.APIService, APIProxySocket: apiProxy.Addr().String(), ProxySocket: n.path(inSocket),
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sandbox, n.apiProxy = started, apiProxy
	return err
}

// running returns the sandbox; nil while the node is lost.
func (n *Node) running() *sandbox.Sandbox {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sandbox
}

// Runs reports whether the node was not lost.
func (n *Node) Runs() bool { return n.running() != nil }

// Connect connects two running nodes, so that their pods reach each other.
func Connect(one, other *Node) error {
	tools, err := findTools()
	if err != nil {
		return err
	}
	end := func(n *Node) sandbox.End {
		return sandbox.End{Sandbox: n.running(), Address: n.address(), Pods: n.podNetwork()}
	}
	if err := sandbox.Connect(tools.busybox, end(one), end(other)); err != nil {
		return fmt.Errorf("connect the nodes %s and %s: %w", one.Name, other.Name, err)
	}
	return nil
}

// Has reports whether an IP address is the node's or one of its pods.
func (n *Node) Has(ip net.IP) bool {
	_, pods, err := net.ParseCIDR(n.podNetwork())
	return err == nil && (pods.Contains(ip) || ip.Equal(net.ParseIP(n.address())))
}

// Dial connects to a TCP address of the node or its pods.
func (n *Node) Dial(address string) (io.ReadWriteCloser, error) {
	return sandbox.DialThrough(n.path(inSocket), address)
}

// errLost is the error of what a lost node cannot do.
var errLost = errors.New("the node is lost; replace it first")

// StartKubelet starts the kubelet, also after StopKubelet. It has no effect while it runs.
func (n *Node) StartKubelet(ctx context.Context) error { return n.run(ctx, Kubelet, n.kubelet...) }

// StopKubelet kills the kubelet, as a network partition would: containers keep running without supervision. The cluster notices it after
// its node monitor grace period (40 s, or 50 s since 1.32).
func (n *Node) StopKubelet(ctx context.Context) error { return n.stop(ctx, Kubelet) }

// StartContainerd starts containerd, also after StopContainerd, and waits until it responds. It has no effect while it runs.
func (n *Node) StartContainerd(ctx context.Context) error {
	if err := n.run(ctx, containerd, n.containerd...); err != nil {
		return err
	}
	return n.waitForContainerd(ctx)
}

// StopContainerd kills containerd, as a crash would: containers keep running, and the kubelet can neither start nor stop any.
func (n *Node) StopContainerd(ctx context.Context) error { return n.stop(ctx, containerd) }

// KubeletRuns reports whether the kubelet runs.
func (n *Node) KubeletRuns(ctx context.Context) (bool, error) {
	if sandbox := n.running(); sandbox != nil {
		return sandbox.Runs(ctx, Kubelet)
	}
	return false, nil
}

// Alive returns nil while everything runs that was started and not stopped.
func (n *Node) Alive(ctx context.Context) error {
	if sandbox := n.running(); sandbox != nil {
		return sandbox.Alive(ctx)
	}
	return nil
}

// Lose ends the node with everything on it and its disk, as the loss of a machine would. The cluster is not notified.
func (n *Node) Lose(context.Context) error {
	if err := n.Destroy(); err != nil {
		return err
	}
	return os.RemoveAll(n.path())
}

// Destroy ends every process of the node, and so its mounts and network, and removes its control groups. Its files are removed with the
// state directory.
func (n *Node) Destroy() error {
	n.mu.Lock()
	ended, apiProxy := n.sandbox, n.apiProxy
	n.sandbox, n.apiProxy = nil, nil
	n.mu.Unlock()
	if ended != nil {
		ended.Kill()
	}
	var failed error
	if apiProxy != nil {
		failed = apiProxy.Close()
	}
	return errors.Join(failed, removeCgroups(n.cgroup()))
}

// Sweep removes what the nodes of a cluster leave on the host: empty control groups.
func Sweep(cluster string) error { return removeCgroups(filepath.Base(cluster)) }

// run runs a component on the node until it is stopped.
func (n *Node) run(ctx context.Context, name string, command ...string) error {
	running := n.running()
	if running == nil {
		return errLost
	}
	return running.Run(ctx, sandbox.Command{
		Name: name, Arguments: command, Environment: process.BaseEnvironment(n.Cluster), Log: n.log(name),
	})
}

// stop kills a component. It has no effect while the node is lost.
func (n *Node) stop(ctx context.Context, name string) error {
	if running := n.running(); running != nil {
		return running.Stop(ctx, name)
	}
	return nil
}

func (n *Node) address() string { return fmt.Sprintf(address, n.Number) }

func (n *Node) podNetwork() string { return fmt.Sprintf(podNetwork, n.Number) }

// cgroup is the name of the node's control groups, which are part of the cluster's.
func (n *Node) cgroup() string { return filepath.Join(filepath.Base(n.Cluster), n.dir()) }

func (n *Node) dir() string { return fmt.Sprintf(dirName, n.Number) }

func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.Cluster, n.dir()}, elements...)...)
}

// log is the file for the log of a component: kubelet-1.log.
func (n *Node) log(name string) string {
	return filepath.Join(n.Logs, fmt.Sprintf("%s-%d.log", name, n.Number))
}
