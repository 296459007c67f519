// Package kubebuild builds Kubernetes from source: etcd, the API server, the controller manager, the scheduler and the
// kubelet as one binary that answers to their names. The source is the module in the repository's kubernetes directory;
// Go's module proxy is the only place anything is fetched from.
package kubebuild

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/renameio/v2"
	"k8s.io/apimachinery/pkg/util/version"
)

// binaryName is the name of the binary that holds every component.
const binaryName = "kubernetes"

// Options say what to build, from what, and where to.
type Options struct {
	// Source is the directory of the module that builds Kubernetes: kubernetes/ in the repository.
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

// Build makes sure that the binary of the wanted version is there and current, and returns the directory that holds it
// under every name of Components. A first build takes minutes; when nothing has changed it returns within a second. When
// the context ends, the build is stopped and whatever was there before is left as it was.
//
// It fails when there is no Go toolchain, when Source is not the module, when the module proxy does not have the
// version, and when Go cannot build it; the error then ends with what Go said last.
func Build(ctx context.Context, options Options) (string, error) {
	source, err := readSource(options.Source)
	if err != nil {
		return "", err
	}
	version := source.version
	if options.Version != "" {
		if version, err = parseVersion(options.Version); err != nil {
			return "", err
		}
	}
	into, err := filepath.Abs(options.Into)
	if err != nil {
		return "", fmt.Errorf("build Kubernetes %s into %s: %w", version, options.Into, err)
	}
	build := build{source: source, version: version, dir: filepath.Join(into, tag(version)), out: options.Out}
	if err := build.run(ctx); err != nil {
		return "", fmt.Errorf("build Kubernetes %s: %w", version, err)
	}
	return build.dir, nil
}

// build is one version on its way into its directory.
type build struct {
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
	progress := startProgress(b.out, b.version, b.source.mod.Module.Mod.Path)
	err = b.make(ctx, tool, progress)
	progress.stop(err == nil)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(b.dir, stampName), []byte(stamp), 0o644)
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
	return b.link()
}

// upToDate says whether the directory holds the binary that the stamp describes, under all its names.
func (b build) upToDate(stamp string) bool {
	written, err := os.ReadFile(filepath.Join(b.dir, stampName))
	if err != nil || string(written) != stamp {
		return false
	}
	for _, name := range append(Components(), binaryName) {
		if _, err := os.Stat(filepath.Join(b.dir, name)); err != nil {
			return false
		}
	}
	return true
}

// link gives the binary the names of its components.
func (b build) link() error {
	for _, component := range Components() {
		path := filepath.Join(b.dir, component)
		if target, err := os.Readlink(path); err == nil && target == binaryName {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.Symlink(binaryName, path); err != nil {
			return err
		}
	}
	return nil
}
