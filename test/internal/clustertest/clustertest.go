// Package clustertest creates embedded clusters for tests, and skips long tests.
package clustertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// Cluster creates an embedded cluster from what `make build` has built into its output directory, and removes it when the test ends. The test is
// skipped when that Kubernetes is not there.
func Cluster(t testing.TB, bin string) *embedded.Cluster {
	t.Helper()
	Uncached()
	binaries, err := binaries.Find(filepath.Join(bin, "kubernetes"), os.Getenv(build.VersionVariable))
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

// Uncached keeps Go from using cached results of tests that start clusters, when these are built again, which Go does not know.
// `make test` sets the variable to a checksum of what it has built.
func Uncached() { _ = os.Getenv("TEST_RUN") }

// Long skips a test that takes minutes, or loads a shared cluster: `make test-long` runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is long: make test-long runs it")
	}
}
