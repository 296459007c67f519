package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
	"github.com/deletion-conformance/deletion-conformance/provider"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
)

// localFlags are the flags of an embedded cluster.
type localFlags struct {
	set                *pflag.FlagSet
	version            string
	withoutControllers bool
	auditLog           string
	logs               string
	node               string
}

// The choices of --node.
const (
	nodeAuto    = "auto"
	nodeKubelet = "kubelet"
	nodeNone    = "none"
)

// versionVariable names the environment variable with the version of the embedded Kubernetes.
const versionVariable = "KUBERNETES_VERSION"

func (f *localFlags) addTo(flags *pflag.FlagSet) {
	set := pflag.NewFlagSet("local", pflag.ContinueOnError)
	f.set = set
	set.StringVar(&f.version, "kubernetes-version", os.Getenv(versionVariable), "`VERSION` of the embedded Kubernetes, such as 1.34.4 (default: $"+versionVariable+", else the newest that was built)")
	set.BoolVar(&f.withoutControllers, "without-controllers", false, "make the embedded Kubernetes an API server alone")
	set.StringVar(&f.auditLog, "audit-log", "", "`FILE` for the audit log of the embedded API server")
	set.StringVar(&f.node, "node", nodeAuto, "whether the embedded Kubernetes gets a real node: auto (where one is possible and used), kubelet or none")
	set.StringVar(&f.logs, "cluster-logs", "", "`FOLDER` for the logs of the embedded Kubernetes")
	flags.AddFlagSet(set)
}

// given is one of the flags that were given; empty when none was.
func (f *localFlags) given() string { return clusters.Given(f.set) }

// localCluster is a local cluster, and what a run should know of it.
type localCluster struct {
	*provider.Local
	vouched []v1alpha1.Need
	absent  map[v1alpha1.Need]string
	control string
	closing io.Closer
}

// create makes a local cluster. It gets a real node when the flags say so, or when one is wanted and possible.
func (f *localFlags) create(ctx context.Context, progress io.Writer, nodeWanted bool) (*localCluster, error) {
	binaries, err := f.binaries()
	if err != nil {
		return nil, usage(err)
	}
	cluster := &localCluster{absent: map[v1alpha1.Need]string{}}
	options, err := f.options(cluster, nodeWanted)
	if err != nil {
		return nil, usage(err)
	}
	cluster.Local = provider.NewLocal(binaries, options...)
	started := time.Now()
	if _, err := cluster.Create(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &exit{ExitUnreachable, err}
	}
	cluster.control = filepath.Join(cluster.Folder(), "control.sock")
	if cluster.closing, err = component.Serve(cluster.control, cluster.switches()); err != nil {
		return nil, errors.Join(err, cluster.Destroy(ctx))
	}
	_, _ = fmt.Fprintf(progress, "embedded Kubernetes %s is up after %s\n", filepath.Base(binaries), time.Since(started).Round(100*time.Millisecond))
	return cluster, nil
}

// options are how to make the cluster, and with them what can be vouched for.
func (f *localFlags) options(cluster *localCluster, nodeWanted bool) ([]provider.LocalOption, error) {
	var options []provider.LocalOption
	if f.auditLog != "" {
		options = append(options, provider.WithAuditLog(f.auditLog))
	}
	cluster.vouched = []v1alpha1.Need{v1alpha1.CRD, v1alpha1.Admin, v1alpha1.Hook}
	if f.withoutControllers {
		if f.node == nodeKubelet {
			return nil, fmt.Errorf("--without-controllers and --node %s contradict each other: a node needs controllers; give one", nodeKubelet)
		}
		for _, need := range []v1alpha1.Need{v1alpha1.GC, v1alpha1.KCM, v1alpha1.Node} {
			cluster.absent[need] = "this run was told to do with an API server alone (--without-controllers)"
		}
		return append(options, provider.WithoutControllers()), nil
	}
	cluster.vouched = append(cluster.vouched, v1alpha1.GC, v1alpha1.KCM)
	unsupported := provider.NodeSupported()
	switch {
	case f.node == nodeKubelet && unsupported != nil:
		return nil, fmt.Errorf("--node %s: %w", nodeKubelet, unsupported)
	case f.node == nodeKubelet, f.node == nodeAuto && nodeWanted && unsupported == nil:
		cluster.vouched = append(cluster.vouched, v1alpha1.Node)
		return append(options, provider.WithNode(provider.Images{Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage})), nil
	case f.node == nodeNone:
		cluster.absent[v1alpha1.Node] = "this run was told to do without (--node none)"
	case f.node != nodeAuto:
		return nil, fmt.Errorf("--node %q: it is %s, %s or %s", f.node, nodeAuto, nodeKubelet, nodeNone)
	case unsupported != nil:
		cluster.absent[v1alpha1.Node] = unsupported.Error()
	}
	return options, nil
}

// switches are the parts that specs can stop.
func (l *localCluster) switches() map[component.Component]component.Switch {
	if !slices.Contains(l.vouched, v1alpha1.Node) {
		return nil
	}
	return map[component.Component]component.Switch{component.Kubelet: {
		Stop:  func(ctx context.Context) error { return l.StopNode(ctx, nil) },
		Start: l.startKubelet,
	}}
}

// startKubelet starts the kubelet unless it runs.
func (l *localCluster) startKubelet(ctx context.Context) error {
	nodes, err := l.ListNode(ctx)
	if err != nil || len(nodes) == 1 && nodes[0].State == nodeRunning {
		return err
	}
	return l.StartNode(ctx, nil)
}

// nodeRunning is the state of a node whose kubelet runs.
const nodeRunning = "running"

// destroy removes a local cluster, after its logs were saved for those who asked for them.
func (f *localFlags) destroy(local *localCluster, progress io.Writer) {
	_ = local.closing.Close() // nobody uses the socket any more
	if f.logs != "" {
		if err := local.ExportLogs(context.Background(), f.logs); err != nil {
			_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
		}
	}
	if err := local.Destroy(context.Background()); err != nil {
		_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
	}
}

// distributions is the folder that holds the built versions of Kubernetes: kubernetes/ beside the runner.
func distributions() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the runner's own folder: %w", err)
	}
	return filepath.Join(filepath.Dir(executable), "kubernetes"), nil
}

// binaries is the folder with the binaries of the version that was asked for, or of the newest.
func (f *localFlags) binaries() (string, error) {
	folder, err := distributions()
	if err != nil {
		return "", err
	}
	if f.version == "" {
		return kubebuild.Newest(folder)
	}
	version, err := kubebuild.ParseVersion(f.version)
	if err != nil {
		return "", err
	}
	binaries := filepath.Join(folder, version.Tag())
	if _, err := os.Stat(binaries); err != nil {
		return "", fmt.Errorf("no Kubernetes %s was built: %s=%s make build does it", version.Tag(), versionVariable, version)
	}
	return binaries, nil
}
