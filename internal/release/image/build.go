package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	kubernetes "github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

const (
	// versionVariable is the variable of the runner that contains its version.
	versionVariable = "github.com/deletion-conformance/deletion-conformance/internal/cli.stamped"
	// kubernetesSource and kubernetesBuilds are the module that builds kubectl, and the directory for what was built.
	kubernetesSource, kubernetesBuilds = "kubernetes", "bin/kubernetes"
)

// program is a file of the image.
type program struct {
	// name is its name in the image, and path its path on this machine.
	name, path string
	// version is the version of its release.
	version string
}

// build builds the programs of the image for an architecture, in the directory of the repository.
func build(ctx context.Context, from source, kubernetesVersion, architecture string) ([]program, error) {
	runner := filepath.Join("bin", "image", architecture, "runner")
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, kubernetes.CompilerFlags,
		[]string{"-ldflags=-s -w -X " + versionVariable + "=" + from.version, "-o", runner, "./cmd/runner"})...)
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("build the runner for %s: %w", architecture, err)
	}
	kubectl, err := kubernetes.KubectlFor(ctx, kubernetes.Options{
		Source: kubernetesSource, Version: kubernetesVersion, Into: kubernetesBuilds, Out: os.Stderr,
	}, architecture)
	if err != nil {
		return nil, err
	}
	return []program{
		{name: "runner", path: runner, version: from.version},
		{name: "kubectl", path: kubectl, version: filepath.Base(filepath.Dir(filepath.Dir(kubectl)))},
	}, nil
}
