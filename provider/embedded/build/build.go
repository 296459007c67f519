// Package build builds Kubernetes from source: etcd, the API server, the controller manager, the scheduler and the
// kubelet as one binary that answers to their names, and kubectl as another, when it is wanted. A first build may begin
// with a binary of etcd and the API server alone, which is there sooner. The source is the module in the repository's
// kubernetes directory, or a copy of it that the runner carries; Go's module proxy is the only place anything is fetched
// from.
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
	// name is what the binary is called, and title what people call it.
	name, title string
	// folder is that of its package in the module.
	folder string
	// links are other names that it answers to.
	links []string
	// tags are build tags that leave something out.
	tags []string
	// below is the directory below that of the version in which it is put; empty for that of the version.
	below string
	// work is how many minutes a first build takes one processor core.
	work int
	// stamp is the file that says from what it was built.
	stamp string
}

// kubernetes is the binary that holds every component.
func kubernetes() target {
	return target{name: "kubernetes", title: "Kubernetes", folder: ".", work: 12, links: Components(), stamp: ".built-from"}
}

// Options say what to build, from what, and where to.
type Options struct {
	// Source is the directory of the module that builds Kubernetes: kubernetes/ in the repository. Empty means the one that
	// the runner carries, which is put into Into.
	Source string
	// Version is the version of Kubernetes, such as "1.34.4". Empty means the version that Source's go.mod requires.
	Version string
	// Into is the directory that gets one directory a version: Into/v1.34.4.
	Into string
	// Out is told how a build that takes minutes is coming along: a live line where it is a terminal, else a line
	// every 30 seconds. A build that is up to date says nothing.
	Out io.Writer
}

// Components are the names the binary answers to on this operating system.
func Components() []string {
	components := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if runtime.GOOS == "linux" {
		components = append(components, "kubelet")
	}
	return components
}

// Kubernetes makes sure that the binary of the wanted version is there and current, and returns the directory that holds it
// under every name of Components. A first build takes minutes; when nothing has changed it returns within a second. When
// the context ends, the build is stopped and whatever was there before is left as it was.
//
// It fails when there is no Go toolchain, when Source is not the module, when the module proxy does not have the
// version, and when Go cannot build it; the error then ends with what Go said last.
func Kubernetes(ctx context.Context, options Options) (string, error) {
	build, err := options.build(kubernetes())
	if err != nil {
		return "", err
	}
	first := filepath.Join(build.dir, apiServerAlone().below)
	if _, err := os.Stat(filepath.Join(first, apiServerAlone().stamp)); err == nil {
		build.work -= apiServerAlone().work // what it shares with the rest is compiled
	}
	if err := build.run(ctx); err != nil {
		return "", fmt.Errorf("build Kubernetes %s: %w", build.version, err)
	}
	if err := os.RemoveAll(first); err != nil { // which may still run
		return "", fmt.Errorf("build Kubernetes %s: %w", build.version, err)
	}
	return build.dir, rememberSource(filepath.Dir(build.dir), build.source.dir)
}

// build is what it takes to build one target as the options say.
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
			return build{}, fmt.Errorf("put what %s is built from into %s: %w", target.title, into, err)
		}
	}
	source, err := readSource(dir)
	if err != nil {
		return build{}, err
	}
	version := source.version
	if o.Version != "" {
		if version, err = parseVersion(o.Version); err != nil {
			return build{}, err
		}
	}
	dir = filepath.Join(into, tag(version), target.below)
	return build{target: target, source: source, version: version, dir: dir, out: o.Out}, nil
}

// build is one version of a target on its way into its directory.
type build struct {
	target
	source  source
	version *version.Version
	dir     string
	out     io.Writer
}

func (b build) run(ctx context.Context) error {
	tool, err := findGo(ctx, b.source.dir)
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

// make fills the directory.
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

// upToDate says whether the directory holds the binary that the stamp describes, under all its names.
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

// makeLinks gives the binary its other names.
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
