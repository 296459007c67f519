// Package e2e tests the built runner against real clusters: exit codes, reports, what it writes to a cluster, and that it removes all of
// it.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// built is the setup of TestMain for all tests.
var built struct {
	// runner is the runner's binary, next to a directory kubernetes.
	runner string
	// kubernetes is the directory of the Kubernetes for clusters, or missing why there is none.
	kubernetes string
	missing    error
}

const kubernetesDir = "kubernetes"

// atOnce is the number of parallel tests without -parallel, because they mostly wait: the namespace controller alone takes 5 s to begin
// with a namespace.
const atOnce = "8"

func TestMain(m *testing.M) {
	reexec.Init(map[string]func() error{embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) }})
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "runner-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, destroyClusters(), os.RemoveAll(dir)) }()
	builds, err := filepath.Abs(filepath.Join("..", "..", "bin", kubernetesDir))
	if err != nil {
		return 0, err
	}
	if err := os.Symlink(builds, filepath.Join(dir, kubernetesDir)); err != nil {
		return 0, err
	}
	built.kubernetes, built.missing = binaries.Find(builds, os.Getenv(build.VersionVariable))
	if dir := os.Getenv("KUBERNETES_BINARIES"); dir != "" {
		built.kubernetes, built.missing = dir, nil
	}
	built.runner = filepath.Join(dir, "runner")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", built.runner, "../../cmd/runner").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the runner: %w\n%s", err, out)
	}
	return m.Run(), nil
}
