package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

// containerdConfig makes containerd use only its own directories, and nothing that it would share with another containerd on the same
// kernel (AppArmor profiles). The native snapshotter works on every file system.
var containerdConfig = template.Must(template.New("containerd").Parse(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.Pause}}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.Plugins}}"
    conf_dir = "{{.Network}}"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{{.Runc}}"
        SystemdCgroup = false
`))

// pollInterval is the time between attempts to connect to containerd.
const pollInterval = 20 * time.Millisecond

// network connects pods with the node, and with each other through it.
const network = `{
  "cniVersion": "0.4.0",
  "name": "deletion-conformance",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {"type": "host-local", "subnet": %q, "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// socket is the socket of containerd.
func (n *Node) socket() string { return n.path("containerd.sock") }

// prepareContainerd configures and starts containerd, waits until it responds and imports the images.
func (n *Node) prepareContainerd(ctx context.Context, tools tools) error {
	if err := makeDirs(n.path("network")); err != nil {
		return err
	}
	if err := os.WriteFile(n.path("network", "10-ptp.conflist"), fmt.Appendf(nil, network, n.podNetwork()), 0o600); err != nil {
		return err
	}
	config := n.path("containerd.toml")
	if err := write(config, containerdConfig, map[string]string{
		"Socket": n.socket(), "Pause": n.Images.Pause, "Network": n.path("network"),
		"Plugins": tools.plugins, "Runc": tools.runc,
	}); err != nil {
		return err
	}
	archive := n.path("images.tar")
	if err := n.Images.Write(tools.busybox, archive); err != nil {
		return err
	}
	n.containerd = []string{tools.containerd, "--config", config}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not within %s", startTimeout))
	defer cancel()
	if err := n.StartContainerd(ctx); err != nil {
		return err
	}
	for _, archive := range append([]string{archive}, n.Archives...) {
		if err := n.importImages(ctx, tools.ctr, archive); err != nil {
			return err
		}
	}
	return nil
}

// waitForContainerd waits until containerd accepts connections.
func (n *Node) waitForContainerd(ctx context.Context) error {
	refused := errors.New("not checked")
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var connection net.Conn
		if connection, refused = net.Dial("unix", n.socket()); refused == nil {
			return true, connection.Close()
		}
		return false, n.Alive(ctx)
	})
	if ctx.Err() != nil {
		return fmt.Errorf("wait for containerd: %w; last error: %w", context.Cause(ctx), refused)
	}
	return err
}

// importImages imports the images into containerd. They are unpacked when the first container needs them, which works with every version of
// containerd and every snapshotter.
func (n *Node) importImages(ctx context.Context, ctr, archive string) error {
	command := exec.CommandContext(ctx, ctr, "--address", n.socket(), "--namespace", "k8s.io",
		"images", "import", "--no-unpack", archive)
	command.Env = process.BaseEnvironment(n.Cluster)
	if output, err := command.CombinedOutput(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("import the images of %s: %w\n%s", archive, err, output))
	}
	return nil
}

// write executes a template into a file.
func write(path string, content *template.Template, values map[string]string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := content.Execute(file, values); err != nil {
		_ = file.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Close()
}

func makeDirs(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first of the directories that contains all the files.
func find(dirs []string, files ...string) (string, bool) {
next:
	for _, dir := range dirs {
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				continue next
			}
		}
		return dir, true
	}
	return "", false
}
