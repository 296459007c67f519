package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/filelock"
)

// kubectl is built separately and on demand, because most runs do not need it.
var kubectl = target{name: "kubectl", title: "kubectl", folder: "kubectl", work: 2, stamp: ".kubectl-built-from"}

// sourceLink is a link next to the directories of the versions that leads to the module from which they were built.
const sourceLink = "source"

// rememberSource records the directory of the module.
func rememberSource(into, source string) error {
	link := filepath.Join(into, sourceLink)
	if target, err := os.Readlink(link); err == nil && target == source {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(source, link)
}

// Kubectl returns the kubectl for the Kubernetes in a directory that Kubernetes or Find returned. It builds kubectl from the same source
// unless it is up to date. If the source is gone, it returns the kubectl that was built before. Out receives the progress of a build.
func Kubectl(ctx context.Context, dir string, out io.Writer) (string, error) {
	path := filepath.Join(dir, kubectl.name)
	into := filepath.Dir(dir)
	source, err := filepath.EvalSymlinks(filepath.Join(into, sourceLink))
	if err != nil {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		return "", fmt.Errorf("no kubectl was built in %s, and its source is unknown: run `runner cluster build`", dir)
	}
	version, err := ParseVersion(filepath.Base(dir))
	if err != nil {
		return "", err
	}
	build, err := Options{Source: source, Version: version.String(), Into: into, Out: out}.build(kubectl)
	if err != nil {
		return "", err
	}
	unlock, err := filelock.Wait(ctx, filepath.Join(dir, ".kubectl-lock"))
	if err == nil {
		err = errors.Join(build.run(ctx), unlock())
	}
	if err != nil {
		return "", fmt.Errorf("build kubectl %s: %w", version, err)
	}
	return path, nil
}

// KubectlFor builds kubectl for Linux on an architecture in Go's notation, such as "arm64", and returns its path. It fails as Kubernetes
// does.
func KubectlFor(ctx context.Context, options Options, architecture string) (string, error) {
	target := kubectl
	target.below, target.stamp = "linux-"+architecture, ".built-from"
	build, err := options.build(target)
	if err != nil {
		return "", err
	}
	build.platform = []string{"GOOS=linux", "GOARCH=" + architecture}
	if err := build.run(ctx); err != nil {
		return "", fmt.Errorf("build kubectl %s for %s: %w", build.version, architecture, err)
	}
	return filepath.Join(build.dir, kubectl.name), nil
}
