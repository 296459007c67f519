package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// embeddedFlags are the flags of an embedded cluster.
type embeddedFlags struct {
	created            createdFlags
	set                *pflag.FlagSet
	dir                string // of binaries that the user has
	source             sourceFlags
	withoutControllers bool
	auditLog           string
	nodes              string
	// archives are files with images for the nodes.
	archives []string
}

const (
	archiveFlag  = "image-archive"
	binariesFlag = "kubernetes-binaries"
	// assetsVariable is the environment variable with the directory of envtest's binaries.
	assetsVariable = "KUBEBUILDER_ASSETS"
)

// The choices of --nodes.
const (
	nodesFlag = "nodes"
	nodesAuto = "auto"
	noNodes   = "0"
	twoNodes  = "2"
)

var nodesChoices = []string{nodesAuto, noNodes, "1", twoNodes}

func (f *embeddedFlags) addTo(groups *cliflag.NamedFlagSets) {
	f.created.addTo(groups)
	set := groups.FlagSet(embeddedGroup)
	f.set = set
	set.StringVar(&f.dir, binariesFlag, os.Getenv(assetsVariable), "`DIR` with binaries of Kubernetes to use instead of others: kube-apiserver and etcd, and optionally kube-controller-manager with kube-scheduler, kubelet and kubectl (default: $"+assetsVariable+", unless a version is specified)")
	f.source.addTo(set, binaries.Auto)
	set.BoolVar(&f.withoutControllers, "without-controllers", false, "run the embedded API server without controllers")
	set.StringVar(&f.auditLog, "audit-log", "", "`FILE` for the audit log of the embedded API server")
	set.StringVar(&f.nodes, nodesFlag, nodesAuto, "number of real nodes of the embedded Kubernetes: auto (one if possible and needed), 0, 1 or 2")
}

// create creates an embedded cluster. It gets as many real nodes as the flags require, or one if it is wanted and supported.
func (f *embeddedFlags) create(ctx context.Context, progress io.Writer, nodeWanted bool) (*embedded.Cluster, error) {
	if err := checkChoice(nodesFlag, f.nodes, nodesChoices...); err != nil {
		return nil, usage(err)
	}
	node := f.nodes != noNodes && (nodeWanted || f.nodesRequired() > 0) && embedded.NodeSupported() == nil
	kubernetes, err := f.binaries(ctx, progress, node)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, usage(err)
	}
	options, err := f.options(kubernetes, nodeWanted)
	if err != nil {
		return nil, usage(err)
	}
	cluster := embedded.New(kubernetes.dir, options...)
	started := time.Now()
	if err := cluster.Create(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, embedded.ErrBinaries) {
			return nil, usage(err)
		}
		return nil, &exit{ExitUntested, err}
	}
	_, _ = fmt.Fprintf(progress, "embedded Kubernetes %s is up after %s\n", cluster.KubernetesVersion(), time.Since(started).Round(100*time.Millisecond))
	return cluster, nil
}

// options returns the options of the cluster.
func (f *embeddedFlags) options(kubernetes kubernetes, nodeWanted bool) ([]embedded.Option, error) {
	var options []embedded.Option
	if f.auditLog != "" {
		options = append(options, embedded.WithAuditLog(f.auditLog))
	}
	without, err := f.uncontrolled(kubernetes)
	switch {
	case err != nil:
		return nil, err
	case without != "" && len(f.archives) > 0:
		return nil, fmt.Errorf("--%s requires a node, which requires controllers: %s", archiveFlag, without)
	case without != "" && f.nodesRequired() > 0:
		return nil, fmt.Errorf("--%s %s requires controllers: %s", nodesFlag, f.nodes, without)
	case without != "":
		return append(options, embedded.WithoutControllers(),
			embedded.Unsupported(without, v1alpha1.GC, v1alpha1.KCM, v1alpha1.Node, v1alpha1.TwoNodes)), nil
	}
	for _, archive := range f.archives {
		if _, err := os.Stat(archive); err != nil {
			return nil, fmt.Errorf("--%s: %w; make image writes an archive of the runner", archiveFlag, err)
		}
	}
	options = append(options, embedded.WithImageArchives(f.archives...))
	nodes, err := f.nodesOptions(kubernetes, nodeWanted)
	return append(options, nodes...), err
}

// uncontrolled returns why the cluster is only an API server; empty for one with controllers.
func (f *embeddedFlags) uncontrolled(kubernetes kubernetes) (string, error) {
	if f.withoutControllers {
		return "the cluster was created without controllers (--without-controllers)", nil
	}
	err := cmp.Or(kubernetes.check(string(component.ControllerManager)), kubernetes.check("kube-scheduler"))
	if errors.Is(err, fs.ErrNotExist) {
		return err.Error(), nil
	}
	return "", err
}

// nodesRequired is the number of nodes that the flag requires; 0 for auto.
func (f *embeddedFlags) nodesRequired() int {
	required, err := strconv.Atoi(f.nodes)
	if err != nil {
		return 0
	}
	return required
}

// nodesOptions adds nodes to the cluster, and the reasons why it has no more.
func (f *embeddedFlags) nodesOptions(kubernetes kubernetes, wanted bool) ([]embedded.Option, error) {
	impossible := cmp.Or(embedded.NodeSupported(), kubernetes.check(string(component.Kubelet)))
	count := f.nodesRequired()
	if f.nodes == nodesAuto && wanted && impossible == nil {
		count = 1
	}
	switch {
	case count > 0 && impossible != nil:
		return nil, fmt.Errorf("--%s %s: %w", nodesFlag, f.nodes, impossible)
	case len(f.archives) > 0 && (f.nodes == noNodes || impossible != nil):
		return nil, fmt.Errorf("--%s requires a node: %w", archiveFlag, cmp.Or(impossible, errors.New("--"+nodesFlag+" "+noNodes+" leaves it out")))
	case f.nodes == noNodes:
		return withoutNodes("the cluster was created without a node (--" + nodesFlag + " " + noNodes + ")"), nil
	case impossible != nil:
		return withoutNodes(impossible.Error()), nil
	}
	return []embedded.Option{
		embedded.WithNodes(count, embedded.Images{
			Busybox: fixtures.BusyboxImage, Pause: fixtures.PauseImage, StopSignal: fixtures.StopSignalImage,
		}),
		embedded.Unsupported("the cluster was created without a second node; --"+nodesFlag+" "+twoNodes+" creates one", v1alpha1.TwoNodes),
	}, nil
}

// withoutNodes sets why the cluster has no nodes.
func withoutNodes(reason string) []embedded.Option {
	return []embedded.Option{embedded.Unsupported(reason, v1alpha1.Node, v1alpha1.TwoNodes)}
}

// kubernetesStore is the directory of all versions of Kubernetes that were built or downloaded: kubernetes/ next to the runner, as in a
// clone, or else a directory in the user's cache, for an installed runner.
func kubernetesStore() (string, error) {
	beside, err := cloneBinaries()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	return build.Cache()
}

// cloneBinaries is the directory of a clone's builds.
func cloneBinaries() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the runner's own directory: %w", err)
	}
	return filepath.Join(filepath.Dir(executable), "kubernetes"), nil
}

// binaries returns the binaries in the given directory, or those of the given or the default version, which are downloaded or built if they
// are missing.
func (f *embeddedFlags) binaries(ctx context.Context, progress io.Writer, node bool) (kubernetes, error) {
	dirGiven, versionGiven := f.set.Lookup(binariesFlag).Changed, f.created.set.Lookup(versionFlag).Changed
	switch {
	case dirGiven && versionGiven:
		return kubernetes{}, fmt.Errorf("--%s and --%s are mutually exclusive", binariesFlag, versionFlag)
	case f.dir != "" && (dirGiven || f.created.version == ""):
		return kubernetes{dir: f.dir, given: true}, nil
	}
	if err := f.source.check(); err != nil {
		return kubernetes{}, err
	}
	into, err := kubernetesStore()
	if err != nil {
		return kubernetes{}, err
	}
	options := f.source.options(f.created.version, into)
	options.Node, options.Out = node, progress
	dir, err := binaries.Get(ctx, options)
	return kubernetes{dir: dir}, err
}
