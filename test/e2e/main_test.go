// Package e2e looks at the runner from outside: the built command, against real clusters. What it proves is what a
// user relies on: exit codes, reports, what is written to a cluster and that nothing of it stays.
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

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// built is what TestMain has put together for all tests.
var built struct {
	// runner is the runner's binary, with a folder kubernetes beside it.
	runner string
	// kubernetes is the folder with the Kubernetes to make clusters of, or missing says why there is none.
	kubernetes string
	missing    error
}

const kubernetesDir = "kubernetes"

// atOnce is how many tests run at the same time, unless -parallel says otherwise: they wait more than they work.
const atOnce = "4"

func TestMain(m *testing.M) {
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
	built.kubernetes, built.missing = build.Find(builds, os.Getenv(build.VersionVariable))
	built.runner = filepath.Join(dir, "runner")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", built.runner, "../../cmd/runner").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the runner: %w\n%s", err, out)
	}
	return m.Run(), nil
}
