// Package envtest is an example: a project's own test that its kind is deleted as Kubernetes promises, on the
// kube-apiserver and etcd of controller-runtime's envtest.
//
// To have it in a project of yours, copy this file and name your resources and the folder of your definitions. The
// package may have other tests, but no Ginkgo specs of its own: what imports package conformance has those of the
// behaviors.
//
// It is in this module, and not one of its own, so that `make test` runs it on what package conformance is now, and so
// that there is one go.mod to keep. In a project of yours `go get github.com/deletion-conformance/deletion-conformance`
// is all that is needed.
package envtest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/conformance"
)

func TestWidgetsAreDeletedAsKubernetesPromises(t *testing.T) {
	server := &envtest.Environment{
		CRDDirectoryPaths:     []string{"crds"},
		ErrorIfCRDPathMissing: true,
		BinaryAssetsDirectory: assets(t),
	}
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})

	conformance.Test(t, config, conformance.Options{
		Resources: []string{"widgets.example.com"},
		Unsupported: map[v1alpha1.Feature]string{
			v1alpha1.GC:  "envtest has no garbage collector",
			v1alpha1.KCM: "envtest has no controllers",
		},
		ReportDir: t.ArtifactDir(), // kept with `go test -artifacts`
	})
}
