package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
	"github.com/deletion-conformance/deletion-conformance/provider"
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

func (f *localFlags) addTo(flags *pflag.FlagSet) {
	set := pflag.NewFlagSet("local", pflag.ContinueOnError)
	f.set = set
	set.StringVar(&f.version, "kubernetes-version", os.Getenv(kubebuild.VersionVariable), "`VERSION` of the embedded Kubernetes, such as 1.34.4 (default: $"+kubebuild.VersionVariable+", else the newest that was built)")
	set.BoolVar(&f.withoutControllers, "without-controllers", false, "make the embedded Kubernetes an API server alone")
	set.StringVar(&f.auditLog, "audit-log", "", "`FILE` for the audit log of the embedded API server")
	set.StringVar(&f.node, "node", nodeAuto, "whether the embedded Kubernetes gets a real node: auto (where one is possible and used), kubelet or none")
	set.StringVar(&f.logs, "cluster-logs", "", "`DIR` for the logs of the embedded Kubernetes")
	flags.AddFlagSet(set)
}

// given is one of the flags that were given; empty when none was.
func (f *localFlags) given() string { return clusters.Given(f.set) }

// create makes a local cluster. It gets a real node when the flags say so, or when one is wanted and possible.
func (f *localFlags) create(ctx context.Context, progress io.Writer, nodeWanted bool) (*provider.Local, error) {
	binaries, err := f.binaries()
	if err != nil {
		return nil, usage(err)
	}
	options, err := f.options(nodeWanted)
	if err != nil {
		return nil, usage(err)
	}
	cluster := provider.NewLocal(binaries, options...)
	started := time.Now()
	if _, err := cluster.Create(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &exit{ExitUnreachable, err}
	}
	_, _ = fmt.Fprintf(progress, "embedded Kubernetes %s is up after %s\n", filepath.Base(binaries), time.Since(started).Round(100*time.Millisecond))
	return cluster, nil
}

// options are how to make the cluster.
func (f *localFlags) options(nodeWanted bool) ([]provider.LocalOption, error) {
	var options []provider.LocalOption
	if f.auditLog != "" {
		options = append(options, provider.WithAuditLog(f.auditLog))
	}
	if f.withoutControllers {
		if f.node == nodeKubelet {
			return nil, fmt.Errorf("--without-controllers and --node %s contradict each other: a node needs controllers; give one", nodeKubelet)
		}
		const reason = "this run was told to do with an API server alone (--without-controllers)"
		return append(options, provider.WithoutControllers(),
			provider.Unsupported(reason, v1alpha1.GC, v1alpha1.KCM, v1alpha1.Node)), nil
	}
	unsupported := provider.NodeSupported()
	switch {
	case f.node == nodeKubelet && unsupported != nil:
		return nil, fmt.Errorf("--node %s: %w", nodeKubelet, unsupported)
	case f.node == nodeKubelet, f.node == nodeAuto && nodeWanted && unsupported == nil:
		return append(options, provider.WithNode(provider.Images{
			Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
		})), nil
	case f.node == nodeNone:
		return append(options, provider.Unsupported("this run was told to do without (--node none)", v1alpha1.Node)), nil
	case f.node != nodeAuto:
		return nil, fmt.Errorf("--node %q: it is %s, %s or %s", f.node, nodeAuto, nodeKubelet, nodeNone)
	case unsupported != nil:
		return append(options, provider.Unsupported(unsupported.Error(), v1alpha1.Node)), nil
	}
	return options, nil
}

// destroy removes a local cluster, after its logs were saved for those who asked for them.
func (f *localFlags) destroy(cluster *provider.Local, progress io.Writer) {
	if f.logs != "" {
		if err := cluster.ExportLogs(context.Background(), f.logs); err != nil {
			_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
		}
	}
	if err := cluster.Destroy(context.Background()); err != nil {
		_, _ = fmt.Fprintf(progress, "runner: %v\n", err)
	}
}

// newSandboxCommand is how the runner starts itself again as the first process of an embedded cluster's node.
func newSandboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:    provider.SandboxCommand,
		Short:  "Be the first process of a node's sandbox (started by the runner itself)",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(*cobra.Command, []string) error { return provider.Sandbox(os.Stdin, os.Stdout) },
	}
}

// builtKubernetes is the directory that holds the built versions of Kubernetes: kubernetes/ beside the runner.
func builtKubernetes() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the runner's own directory: %w", err)
	}
	return filepath.Join(filepath.Dir(executable), "kubernetes"), nil
}

// binaries is the directory with the binaries of the version that was asked for, or of the newest.
func (f *localFlags) binaries() (string, error) {
	dir, err := builtKubernetes()
	if err != nil {
		return "", err
	}
	return kubebuild.Built(dir, f.version)
}
