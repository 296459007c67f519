// Package binaries finds the binaries of an embedded Kubernetes, downloads them, or builds them.
package binaries

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/download"
)

// Source is where binaries are from.
type Source string

const (
	// Auto takes what was built or downloaded before, then a download, and builds what cannot be downloaded.
	Auto Source = "auto"
	// Download takes official binaries only.
	Download Source = "download"
	// Build takes what was built from source only.
	Build Source = "build"
)

// Sources are the names of all sources.
var Sources = []string{string(Auto), string(Download), string(Build)}

// Options select a version, and where it is from.
type Options struct {
	// Version is the version of Kubernetes, such as "1.34.4". Empty selects the one that this program builds by default.
	Version string
	// Source is where it is from; empty is Auto.
	Source Source
	// Into is the directory of all versions that were built or downloaded.
	Into string
	// Mirror replaces the official servers, see download.Options.
	Mirror string
	// Node selects the kubelet, too, which is not downloaded otherwise.
	Node bool
	// Module is the directory of the module that builds Kubernetes. Empty selects the embedded module.
	Module string
	// Update builds again what was built from other source. Otherwise what was built is used as it is.
	Update bool
	// APIServerAlone builds etcd and the API server only, unless all of it is there.
	APIServerAlone bool
	// Out receives the progress of work that takes minutes.
	Out io.Writer
}

// Find returns the directory of a version that was built or downloaded into a directory, without going online. An empty version is the one
// that this program builds by default.
func Find(into, version string) (string, error) {
	version, err := release(version)
	if err != nil {
		return "", err
	}
	dir, missing := build.Find(into, version)
	if missing == nil {
		return dir, nil
	}
	if dir, err := download.Find(downloads(into), version); err == nil {
		return dir, nil
	}
	return "", missing
}

// Get returns the directory of a version: with the binary of each component, under its name. What is missing is downloaded or built. With
// APIServerAlone the directory is empty when all of it is there. When the context ends, all that was downloaded is kept for the next time.
//
// It fails when the version is not one, and when no source has it; see download.Binaries and build.Kubernetes.
func Get(ctx context.Context, options Options) (string, error) {
	var err error
	if options.Version, err = release(options.Version); err != nil {
		return "", err
	}
	if options.Source == Download {
		return options.download(ctx)
	}
	built, missing := build.Find(options.Into, options.Version)
	switch {
	case missing == nil && !options.Update:
		return built, nil
	case missing != nil && options.Source != Build && !build.Begun(options.Into, options.Version):
		dir, err := options.download(ctx)
		if err == nil || ctx.Err() != nil {
			return dir, err
		}
		if options.Out != nil {
			_, _ = fmt.Fprintf(options.Out, "Kubernetes %s cannot be downloaded and is built instead: %v\n", options.Version, err)
		}
	}
	return options.build(ctx)
}

// Kubectl returns the kubectl of a directory that Get or Find returned. That of a built version is built if necessary, with progress to out.
func Kubectl(ctx context.Context, dir string, out io.Writer) (string, error) {
	if build.IsBuilt(dir) {
		return build.Kubectl(ctx, dir, out)
	}
	return filepath.Join(dir, "kubectl"), nil
}

// build builds the version, or what is needed first.
func (o Options) build(ctx context.Context) (string, error) {
	run := build.Kubernetes
	if o.APIServerAlone {
		run = build.APIServer
	}
	return run(ctx, build.Options{Source: o.Module, Version: o.Version, Into: o.Into, Out: o.Out})
}

// download downloads the version.
func (o Options) download(ctx context.Context) (string, error) {
	dir, err := download.Binaries(ctx, download.Options{
		Version: o.Version, Into: downloads(o.Into), Mirror: o.Mirror, Node: o.Node, Out: o.Out,
	})
	if err != nil || o.APIServerAlone {
		return "", err
	}
	return dir, nil
}

// downloads is the directory of what was downloaded.
func downloads(into string) string { return filepath.Join(into, "downloads") }

// release returns a version without its v.
func release(wanted string) (string, error) {
	version, err := build.ParseVersion(cmp.Or(wanted, build.DefaultVersion()))
	if err != nil {
		return "", err
	}
	return version.String(), nil
}
