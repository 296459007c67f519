// Package embedded makes an embedded cluster for a test that needs one of its own.
package embedded

import (
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/kubebuild"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

// Cluster makes an embedded cluster of the Kubernetes that was built last below a folder, which `make build` calls bin, and removes
// it when the test ends. The test is skipped where none was built.
func Cluster(t testing.TB, bin string) *provider.Local {
	t.Helper()
	binaries, err := kubebuild.Built(filepath.Join(bin, "kubernetes"), "")
	if err != nil {
		t.Skip(err)
	}
	cluster := provider.NewLocal(binaries)
	if _, err := cluster.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return cluster
}
