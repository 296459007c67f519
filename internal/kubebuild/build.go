// Package kubebuild builds Kubernetes from source: etcd, the API server, the controller manager, the scheduler and
// the kubelet as one binary that answers to their names, and the small one that a local node runs in. The source is the module in the repository's kubernetes
// folder; Go's module proxy is the only place anything is fetched from.
package kubebuild

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

const (
	// binaryName is the name of the binary that holds every part.
	binaryName = "kubernetes"
	// machineName is the name of the binary that a node of a local cluster runs in, on Linux.
	machineName = "machine"
)

// Options say what to build, from what, and where to.
type Options struct {
	// Source is the folder of the module that builds Kubernetes: kubernetes/ in the repository.
	Source string
	// Version is the version of Kubernetes, such as "1.34.4". Empty means the version that Source's go.mod requires.
	Version string
	// Into is the folder that gets one folder a version: Into/v1.34.4.
	Into string
	// Out is told how a build that takes minutes is coming along: a live line where it is a terminal, else a line
	// every 30 seconds. A build that is up to date says nothing.
	Out io.Writer
}

// Parts are the names the binary answers to on this operating system.
func Parts() []string {
	parts := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if runtime.GOOS == "linux" {
		parts = append(parts, "kubelet")
	}
	return parts
}

// programs are the binaries that are built on this operating system, with the package of each in the module.
func programs() map[string]string {
	if runtime.GOOS != "linux" {
		return map[string]string{binaryName: "."}
	}
	return map[string]string{binaryName: ".", machineName: "./machine"}
}

// Build makes sure that the binaries of the wanted version are there and current, and returns the folder that holds
// them, the one of Kubernetes under every name of Parts. A first build takes minutes; when nothing has changed it returns within a second. When the
// context ends, the build is stopped and whatever was there before is left as it was.
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
		if version, err = ParseVersion(options.Version); err != nil {
			return "", err
		}
	}
	into, err := filepath.Abs(options.Into)
	if err != nil {
		return "", fmt.Errorf("build Kubernetes %s into %s: %w", version, options.Into, err)
	}
	build := build{source: source, version: version, folder: filepath.Join(into, version.Tag()), out: options.Out}
	if err := build.run(ctx); err != nil {
		return "", fmt.Errorf("build Kubernetes %s: %w", version, err)
	}
	return build.folder, nil
}

// build is one version on its way into its folder.
type build struct {
	source  source
	version Version
	folder  string
	out     io.Writer
}

func (b build) run(ctx context.Context) error {
	tool, err := findGo(ctx, b.source.folder)
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
	return writeWhole(filepath.Join(b.folder, stampName), []byte(stamp))
}

// make fills the folder.
func (b build) make(ctx context.Context, tool goTool, progress *progress) error {
	module, err := b.module(ctx, tool)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return err
	}
	if err := b.compile(ctx, module, progress); err != nil {
		return err
	}
	return b.link()
}

// upToDate says whether the folder holds the binaries that the stamp describes, under all their names.
func (b build) upToDate(stamp string) bool {
	written, err := os.ReadFile(filepath.Join(b.folder, stampName))
	if err != nil || string(written) != stamp {
		return false
	}
	for _, name := range append(Parts(), sortedKeys(programs())...) {
		if _, err := os.Stat(filepath.Join(b.folder, name)); err != nil {
			return false
		}
	}
	return true
}

// link gives the binary the names of its parts.
func (b build) link() error {
	for _, part := range Parts() {
		path := filepath.Join(b.folder, part)
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

// writeWhole writes a file such that it is there entirely or not at all.
func writeWhole(path string, content []byte) error {
	unfinished := fmt.Sprintf("%s-%d", path, os.Getpid())
	if err := os.WriteFile(unfinished, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
