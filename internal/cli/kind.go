package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/provider/kind"
)

// kindFlags are the flags of a kind cluster.
type kindFlags struct {
	set     *pflag.FlagSet
	created *createdFlags
	name    string
	config  string
	image   string
	keep    bool
}

const kindImageFlag, keepClusterFlag = "kind-image", "keep-cluster"

func (f *kindFlags) addTo(groups *cliflag.NamedFlagSets, created *createdFlags) {
	set := groups.FlagSet(kindGroup)
	f.created, f.set = created, set
	set.StringVar(&f.name, "cluster-name", "", "`NAME` of the kind cluster, which must not exist (default: the one in --kind-config, else deletion-conformance)")
	set.StringVar(&f.config, "kind-config", "", "`FILE` with the configuration of the kind cluster, as for kind create cluster --config")
	set.StringVar(&f.image, kindImageFlag, "", "`IMAGE` of the kind cluster's nodes (default: kindest/node of --"+versionFlag+", else the default of kind)")
	set.BoolVar(&f.keep, keepClusterFlag, false, "do not delete the kind cluster after the run")
}

// create creates a kind cluster, and loads those of the images onto its nodes that are on this machine.
func (f *kindFlags) create(ctx context.Context, progress io.Writer, images []string) (*kind.Cluster, error) {
	image, err := f.nodeImage()
	if err != nil {
		return nil, usage(err)
	}
	options := []kind.Option{
		kind.WithName(f.name), kind.WithConfig(f.config), kind.WithImage(image),
		kind.WithPreload(images...), kind.WithLogs(f.created.logs), kind.WithProgress(progress),
	}
	if f.keep {
		options = append(options, kind.WithoutDestroy())
	}
	cluster, err := kind.New(options...)
	if err != nil {
		return nil, usage(err)
	}
	started := time.Now()
	if err := cluster.Create(ctx); err != nil {
		return nil, f.failed(err)
	}
	_, _ = fmt.Fprintf(progress, "kind cluster %s is up after %s\n", cluster.Name(), time.Since(started).Round(100*time.Millisecond))
	return cluster, nil
}

// failed adds the exit code to the error of a cluster that could not be created.
func (f *kindFlags) failed(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kind.ErrNameTaken):
		return usage(fmt.Errorf("%w; choose another name with --cluster-name", err))
	}
	return &exit{ExitUntested, err}
}

// nodeImage returns the image in the flags; empty to use that of the configuration or of kind.
func (f *kindFlags) nodeImage() (string, error) {
	versionGiven := f.created.set.Lookup(versionFlag).Changed
	switch {
	case f.image != "" && versionGiven:
		return "", fmt.Errorf("--%s and --%s are mutually exclusive", kindImageFlag, versionFlag)
	case f.image != "" || f.created.version == "":
		return f.image, nil
	}
	return kind.ImageOf(f.created.version), nil
}

// destroy deletes a kind cluster, or prints how to use one that is kept.
func (f *kindFlags) destroy(cluster *kind.Cluster, progress io.Writer) {
	f.created.destroy(cluster, progress)
	if f.keep {
		_, _ = fmt.Fprintf(progress, "kind cluster %[1]s is kept: use it with `kind export kubeconfig --name %[1]s`, delete it with `kind delete cluster --name %[1]s`\n", cluster.Name())
	}
}
