// Package clustertest is for tests on embedded clusters: it makes one for a test that needs one of its own, and leaves out
// long ones.
package clustertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// Cluster makes an embedded cluster of the Kubernetes that was built last below a folder, which `make build` calls bin,
// and removes it when the test ends. The test is skipped where none was built.
func Cluster(t testing.TB, bin string) *embedded.Cluster {
	t.Helper()
	Uncached()
	binaries, err := build.Find(filepath.Join(bin, "kubernetes"), "")
	if err != nil {
		t.Skip(err)
	}
	cluster := embedded.New(binaries)
	if err := cluster.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Destroy(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Uncached keeps Go from caching the results of a package whose tests start clusters: what these are built from is nothing that Go
// sees. `make test` sets the variable to another value each time.
func Uncached() { _ = os.Getenv("TEST_RUN") }

// Long skips a test that takes minutes, or loads a cluster that others share: `make test-long` runs them.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is long: make test-long runs it")
	}
}
