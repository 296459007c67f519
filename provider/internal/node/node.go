// Package node is a real node for a local cluster: containerd, runc, CNI plugins and the kubelet, on a machine of its
// own that is no more than a few kernel namespaces. Its processes, mounts, addresses and interfaces exist only there and
// end with its first process, which ends with the runner; its control groups bear the name of the cluster's folder.
// Nothing of a container runtime or a kubelet that the host already runs is seen or touched, and nothing listens where
// another machine could reach it: the way in and the way out are sockets in the cluster's folder.
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

	"github.com/deletion-conformance/deletion-conformance/provider/internal/authority"
	"github.com/deletion-conformance/deletion-conformance/provider/internal/process"
)

const (
	// Address is the node's address. Every node has the same: nobody else is on its network.
	Address = "10.88.0.1"
	// podNetwork are the addresses of its pods.
	podNetwork = "10.88.1.0/24"
	// folderName is the folder of the node in the folder of the cluster.
	folderName = "node"
	// machineName is the name of the binary that is the machine's first process.
	machineName = "machine"
	// patience is how long containerd may take to answer, and an image to be imported.
	patience = 60 * time.Second
)

// The parts of a node, by the names of their binaries.
const (
	Kubelet    = "kubelet"
	containerd = "containerd"
)

// Programs are what must be in the folder of binaries.
var Programs = []string{Kubelet, machineName}

// Entrance is the socket in the cluster's folder through which the API server reaches the node, by HTTP CONNECT.
func Entrance(cluster string) string { return filepath.Join(cluster, folderName, "in.sock") }

// Config says what a node is to be like.
type Config struct {
	// Name is the node's name in the cluster.
	Name string
	// Cluster is the folder of the cluster, and Logs the one of its logs.
	Cluster, Logs string
	// Binaries is the folder with the kubelet and the machine.
	Binaries string
	// APIServer is the address and port of the API server, which has the same address on the node.
	APIServer string
	// Kubeconfig is the node's own.
	Kubeconfig string
	Authority  *authority.Authority
	// Images are the names of the images that are there from the start.
	Images Images
}

// Node is a node that runs.
type Node struct {
	Config
	machine *machine
	way     net.Listener // the node's way to the API server
	kubelet []string
}

// Start starts a node. It returns when the kubelet was started; the cluster says when it is ready. When it fails,
// nothing is left but files in the cluster's folder.
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
	if err := makeFolders(n.path("root"), n.path("disk")); err != nil {
		return err
	}
	if err := makeCgroups(n.cgroup()); err != nil {
		return err
	}
	if n.way, err = openWay(n.path("out.sock"), n.APIServer); err != nil {
		return err
	}
	n.machine, err = launch(ctx, filepath.Join(n.Binaries, machineName), n.log(machineName), setup{
		Name: n.Name, Root: n.path("root"), Disk: n.path("disk"),
		Shared: []string{n.Cluster}, Seen: []string{n.Binaries},
		Address: Address, Busybox: tools.busybox, Settings: kubeletSettings(),
		Forward: n.APIServer, ForwardTo: n.path("out.sock"), Entrance: Entrance(n.Cluster),
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

// StartKubelet starts the kubelet, also again after StopKubelet.
func (n *Node) StartKubelet(ctx context.Context) error {
	return n.run(ctx, Kubelet, n.kubelet...)
}

// StopKubelet kills the kubelet, as if the node were cut off: containers keep running, and nobody looks after them.
func (n *Node) StopKubelet(ctx context.Context) error {
	return n.machine.stop(ctx, Kubelet)
}

// Running says whether the kubelet runs.
func (n *Node) Running() bool { return n.machine.running(Kubelet) }

// Alive is nil while everything that was started runs.
func (n *Node) Alive() error {
	return n.machine.alive()
}

// Destroy ends every process of the node, and with them its mounts and network, and removes its control groups. Its
// files are left to whoever removes the cluster's folder.
func (n *Node) Destroy() error {
	var failures []error
	if n.machine != nil {
		n.machine.kill()
	}
	if n.way != nil {
		failures = append(failures, n.way.Close())
	}
	return errors.Join(append(failures, removeCgroups(n.cgroup()))...)
}

// Sweep removes what a node leaves on the host when its runner is killed: empty control groups.
func Sweep(cluster string) error { return removeCgroups(filepath.Base(cluster)) }

// run runs a part on the node until it is stopped.
func (n *Node) run(ctx context.Context, name string, command ...string) error {
	return n.machine.start(ctx, part{
		Name: name, Command: command, Environment: process.Marked(n.Cluster), Log: n.log(name),
	})
}

// cgroup is the name of the node's control groups.
func (n *Node) cgroup() string { return filepath.Base(n.Cluster) }

func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.Cluster, folderName}, elements...)...)
}

func (n *Node) log(name string) string { return filepath.Join(n.Logs, name+".log") }
