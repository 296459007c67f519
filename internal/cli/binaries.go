package cli

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/download"
)

// sourceFlags select where Kubernetes' binaries are from, if they are not there.
type sourceFlags struct{ source, mirror string }

const (
	sourceFlag = "kubernetes-source"
	mirrorFlag = "kubernetes-mirror"
	// sourceVariable and mirrorVariable are the environment variables with the defaults.
	sourceVariable = "KUBERNETES_SOURCE"
	mirrorVariable = "KUBERNETES_MIRROR"
)

// addTo adds the flags, with a default of the source for when its environment variable is not set.
func (f *sourceFlags) addTo(set *pflag.FlagSet, source binaries.Source) {
	set.StringVar(&f.source, sourceFlag, cmp.Or(os.Getenv(sourceVariable), string(source)), "where Kubernetes is from: download (official binaries for Linux, verified), build (from source), or auto (what is there, else a download, else a build) (default: $"+sourceVariable+", else "+string(source)+")")
	set.StringVar(&f.mirror, mirrorFlag, os.Getenv(mirrorVariable), "`HOST[:PORT][/PATH]` of a registry to download Kubernetes from, instead of registry.k8s.io (default: $"+mirrorVariable+")")
}

// check rejects an unknown source, and a mirror that is none.
func (f *sourceFlags) check() error {
	if err := checkChoice(sourceFlag, f.source, binaries.Sources...); err != nil {
		return err
	}
	return download.CheckMirror(f.mirror)
}

// options returns where binaries are from and where they are kept.
func (f *sourceFlags) options(version, into string) binaries.Options {
	return binaries.Options{Version: version, Source: binaries.Source(f.source), Mirror: f.mirror, Into: into}
}

// kubernetes is a directory with binaries of Kubernetes.
type kubernetes struct {
	dir string
	// given binaries are the user's: some may be missing.
	given bool
}

// check returns nil when the binary of a component can be executed.
func (k kubernetes) check(component string) error { return embedded.CheckBinary(k.dir, component) }
