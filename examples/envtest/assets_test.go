package envtest

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// assets is the folder with the binaries that envtest starts: the one that KUBEBUILDER_ASSETS names, as everywhere, or
// else what `make build` has built of Kubernetes. A project of yours need not have it: envtest finds what
// KUBEBUILDER_ASSETS names, which is what setup-envtest says.
func assets(t *testing.T) string {
	t.Helper()
	_ = os.Getenv("TEST_RUN") // so that Go does not cache the results: it sees no change of what is started here
	built, missing := build.Find(filepath.Join("..", "..", "bin", "kubernetes"), os.Getenv(build.VersionVariable))
	found := cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), built)
	if found == "" {
		t.Skipf("there is no kube-apiserver and etcd to start: KUBEBUILDER_ASSETS names none, and %v", missing)
	}
	return found
}
