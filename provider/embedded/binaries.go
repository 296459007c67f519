package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/provider/component"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/node"
)

// ErrBinaries is why a cluster cannot be made of the binaries in a directory.
var ErrBinaries = errors.New("the binaries cannot be used")

// The components of a control plane, by the names of their binaries.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = string(component.ControllerManager)
	scheduler         = "kube-scheduler"
)

// CheckBinary is nil when a directory has the binary of a component that this user may execute. Otherwise it says what is
// wrong; errors.Is(err, fs.ErrNotExist) where there is none.
func CheckBinary(dir, component string) error {
	path := filepath.Join(dir, component)
	switch _, err := exec.LookPath(path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no %s in %s (%w)", component, dir, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("%s may not be executed: %w", path, errors.Unwrap(err))
	}
	return nil
}

// needed are the binaries that the cluster consists of.
func (s settings) needed() []string {
	needed := []string{etcd, apiServer}
	if !s.withoutControllers {
		needed = append(needed, controllerManager, scheduler)
	}
	if s.node != nil {
		needed = append(needed, node.Kubelet)
	}
	return needed
}

// checkBinaries says which binary cannot be used and how to get one, or which version of Kubernetes they are.
func checkBinaries(ctx context.Context, dir string, needed []string) (*version.Version, error) {
	for _, name := range needed {
		if err := CheckBinary(dir, name); err != nil {
			return nil, fmt.Errorf("%w: %w; make build builds them, and --kubernetes-binaries names a directory that has them", ErrBinaries, err)
		}
	}
	return versionOf(ctx, filepath.Join(dir, apiServer))
}

// versionOf asks the binary of an API server for its version.
func versionOf(ctx context.Context, binary string) (*version.Version, error) {
	output, err := exec.CommandContext(ctx, binary, "--version").Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not tell its version: %w", ErrBinaries, binary, err)
	}
	said := strings.TrimSpace(string(output))
	parsed, err := version.ParseSemantic(strings.TrimPrefix(said, "Kubernetes "))
	if err != nil || parsed.Major() == 0 {
		return nil, fmt.Errorf("%w: %s does not tell its version: it says %q, not \"Kubernetes v1.2.3\"", ErrBinaries, binary, firstLine(said))
	}
	return parsed, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
