package envtest

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// assets returns the directory of envtest's binaries: KUBEBUILDER_ASSETS, or else the build of `make build`. Other projects do not need this
// function, because envtest uses KUBEBUILDER_ASSETS itself, which setup-envtest prints.
func assets(t *testing.T) string {
	t.Helper()
	_ = os.Getenv("TEST_RUN") // so that Go does not cache the results, because it does not know the binaries
	built, missing := binaries.Find(filepath.Join("..", "..", "bin", "kubernetes"), os.Getenv(build.VersionVariable))
	found := cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), built)
	if found == "" {
		t.Skipf("kube-apiserver and etcd are missing: KUBEBUILDER_ASSETS is not set, and %v", missing)
	}
	return found
}
