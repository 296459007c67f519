// Package envtest is an example: a project's test that objects of its kind are deleted as Kubernetes promises, on the kube-apiserver and
// etcd of controller-runtime's envtest.
//
// To use it in your project, copy this file and change the resources and the directory of the definitions. The package may contain other
// tests, but no Ginkgo specs, because every importer of package conformance has the specs of the behaviors.
//
// It is part of this module, so that `make test` runs it with the current package conformance, and so that there is only one go.mod. Your
// project only needs `go get github.com/deletion-conformance/deletion-conformance`.
package envtest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/conformance"
)

func TestWidgetDeletion(t *testing.T) {
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
