// Package build builds Kubernetes from source: etcd, the API server, the controller manager, the scheduler and the kubelet as one binary
// with several names, and kubectl as another on demand. A first build can start with a smaller binary of etcd and the API server. The
// source is the module in the repository's kubernetes directory, or the copy that is embedded in the runner. Only Go's module proxy is
// accessed.
package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/renameio/v2/maybe"
	"k8s.io/apimachinery/pkg/util/version"
)

// target is a binary that the module builds.
type target struct {
	// name is the file name, and title the name in messages.
	name, title string
	// folder is the directory of its package in the module.
	folder string
	// links are other file names of the binary.
	links []string
	// tags are build tags that exclude something.
	tags []string
	// below is the subdirectory of the version's directory for the binary; empty for none.
	below string
	// work is the duration of a first build in minutes on one core.
	work int
	// stamp is the file that describes what the binary was built from.
	stamp string
}

// kubernetes is the binary that contains every component.
func kubernetes() target {
	return target{name: "kubernetes", title: "Kubernetes", folder: ".", work: 12, links: Components(), stamp: ".built-from"}
}

// Options select what to build, from which source, and into which directory.
type Options struct {
	// Source is the directory of the module that builds Kubernetes: kubernetes/ in the repository. Empty selects the embedded module, which
	// is extracted to Into.
	Source string
	// Version is the version of Kubernetes, such as "1.34.4". Empty selects the version in Source's go.mod.
	Version string
	// Into is the parent of one directory for each version: Into/v1.34.4.
	Into string
	// Out receives the progress of a build that takes minutes: a live line on a terminal, else a line every 30 seconds. A build that is up
	// to date writes nothing.
	Out io.Writer
}

// Components are the names of the binary on this operating system.
func Components() []string {
	components := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if runtime.GOOS == "linux" {
		components = append(components, "kubelet")
	}
	return components
}

// Kubernetes builds a version unless its binary is up to date, and returns the directory that contains it under every name of Components. A
// first build takes minutes; without changes it returns within a second. When the context ends, the build is stopped and earlier binaries
// are kept.
//
// It fails when there is no Go toolchain, when Source is not the module, when the module proxy does not have the version, and when Go
// cannot build it; the error then ends with the last output of Go.
func Kubernetes(ctx context.Context, options Options) (string, error) {
	build, err := options.build(kubernetes())
	if err != nil {
		return "", err
	}
	first := filepath.Join(build.dir, apiServerAlone().below)
	if _, err := os.Stat(filepath.Join(first, apiServerAlone().stamp)); err == nil {
		build.work -= apiServerAlone().work // shared packages are compiled already
	}
	if err := build.run(ctx); err != nil {
		return "", fmt.Errorf("build Kubernetes %s: %w", build.version, err)
	}
	if err := os.RemoveAll(first); err != nil { // which may still run
		return "", fmt.Errorf("build Kubernetes %s: %w", build.version, err)
	}
	return build.dir, rememberSource(filepath.Dir(build.dir), build.source.dir)
}

// build prepares the build of one target.
func (o Options) build(target target) (build, error) {
	if err := supported(); err != nil {
		return build{}, err
	}
	into, err := filepath.Abs(o.Into)
	if err != nil {
		return build{}, fmt.Errorf("build %s into %s: %w", target.title, o.Into, err)
	}
	dir := o.Source
	if dir == "" {
		if dir, err = unpackEmbeddedModule(into); err != nil {
			return build{}, fmt.Errorf("write the source of %s to %s: %w", target.title, into, err)
		}
	}
	source, err := readSource(dir)
	if err != nil {
		return build{}, err
	}
	version := source.version
	if o.Version != "" {
		if version, err = ParseVersion(o.Version); err != nil {
			return build{}, err
		}
	}
	dir = filepath.Join(into, tag(version), target.below)
	return build{target: target, source: source, version: version, dir: dir, out: o.Out}, nil
}

// build is the build of one version of a target.
type build struct {
	target
	source  source
	version *version.Version
	dir     string
	out     io.Writer
	// platform are environment variables of the go command that select another platform; none for this one.
	platform []string
}

func (b build) run(ctx context.Context) error {
	tool, err := findGo(ctx, b.source.dir, b.platform...)
	if err != nil {
		return err
	}
	stamp := b.source.stamp(b.version, tool)
	if !b.source.mutable(tool) && b.upToDate(stamp) {
		return nil
	}
	progress := startProgress(b.out, b.target, b.version, path.Join(b.source.mod.Module.Mod.Path, b.folder))
	err = b.make(ctx, tool, progress)
	progress.stop(err == nil)
	if err != nil {
		return err
	}
	return maybe.WriteFile(filepath.Join(b.dir, b.stamp), []byte(stamp), 0o644)
}

// make builds the binary into the directory.
func (b build) make(ctx context.Context, tool goTool, progress *progress) error {
	module, err := b.module(ctx, tool)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if err := b.compile(ctx, module, progress); err != nil {
		return err
	}
	return b.makeLinks()
}

// upToDate reports whether the directory contains the binary that the stamp describes, under all its names.
func (b build) upToDate(stamp string) bool {
	written, err := os.ReadFile(filepath.Join(b.dir, b.stamp))
	if err != nil || string(written) != stamp {
		return false
	}
	for _, name := range append(b.links, b.name) {
		if _, err := os.Stat(filepath.Join(b.dir, name)); err != nil {
			return false
		}
	}
	return true
}

// makeLinks creates the other names of the binary.
func (b build) makeLinks() error {
	for _, name := range b.links {
		path := filepath.Join(b.dir, name)
		if target, err := os.Readlink(path); err == nil && target == b.name {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.Symlink(b.name, path); err != nil {
			return err
		}
	}
	return nil
}
