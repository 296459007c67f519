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

// ErrBinaries is the error for binaries that cannot be used.
var ErrBinaries = errors.New("the binaries cannot be used")

// The components of a control plane, by the names of their binaries.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = string(component.ControllerManager)
	scheduler         = string(component.Scheduler)
)

// CheckBinary returns nil when a directory contains the binary of a component and this user may execute it. The error is fs.ErrNotExist
// when it is missing.
func CheckBinary(dir, component string) error {
	path := filepath.Join(dir, component)
	switch _, err := exec.LookPath(path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no %s in %s (%w)", component, dir, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("%s is not executable: %w", path, errors.Unwrap(err))
	}
	return nil
}

// requiredBinaries returns the binaries that the cluster needs.
func (s settings) requiredBinaries() []string {
	needed := []string{etcd, apiServer}
	if !s.withoutControllers {
		needed = append(needed, controllerManager, scheduler)
	}
	if s.nodes > 0 {
		needed = append(needed, node.Kubelet)
	}
	return needed
}

// checkBinaries returns the version of Kubernetes, or an error that names the unusable binary and the remedy.
func checkBinaries(ctx context.Context, dir string, needed []string) (*version.Version, error) {
	for _, name := range needed {
		if err := CheckBinary(dir, name); err != nil {
			return nil, fmt.Errorf("%w: %w; build them with `make build`, or set --kubernetes-binaries to a directory that contains them", ErrBinaries, err)
		}
	}
	return versionOf(ctx, filepath.Join(dir, apiServer))
}

// versionOf returns the version of an API server's binary.
func versionOf(ctx context.Context, binary string) (*version.Version, error) {
	output, err := exec.CommandContext(ctx, binary, "--version").Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s prints no version: %w", ErrBinaries, binary, err)
	}
	printed := strings.TrimSpace(string(output))
	parsed, err := version.ParseSemantic(strings.TrimPrefix(printed, "Kubernetes "))
	if err != nil || parsed.Major() == 0 {
		return nil, fmt.Errorf("%w: %s prints no version: expected \"Kubernetes v1.2.3\", got %q", ErrBinaries, binary, firstLine(printed))
	}
	return parsed, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
