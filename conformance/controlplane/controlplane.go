// Package controlplane starts the control plane of Kubernetes for Go tests: etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler, as processes of the test.
//
// It is for tests that need what controller-runtime's envtest lacks: the garbage collector, which deletes dependents, and the namespace
// controller, which finishes the deletion of namespaces (https://book.kubebuilder.io/reference/envtest).
// Everything that envtest offers besides a control plane works with this one: set Config and UseExistingCluster of its Environment.
package controlplane

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/binaries"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

// Options of a control plane. The zero value selects the Kubernetes that `runner cluster build` builds or downloads for this user by default.
type Options struct {
	// Binaries is a directory with etcd, kube-apiserver, kube-controller-manager and kube-scheduler of one version.
	Binaries string
	// Version selects another version of Kubernetes that was built or downloaded, such as "1.34.4".
	Version string
}

// Start starts a control plane until the test ends, and returns its administrator's configuration. It fails the test with instructions when
// there are no binaries.
func Start(t testing.TB, options Options) *rest.Config {
	t.Helper()
	dir := options.Binaries
	if dir == "" {
		cache, err := build.Cache()
		if err == nil {
			dir, err = binaries.Find(cache, options.Version)
		}
		if err != nil {
			t.Fatalf("start a control plane: %v", err)
		}
	}
	cluster := embedded.New(dir)
	if err := cluster.Create(t.Context()); err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Destroy(); err != nil {
			t.Errorf("end the control plane: %v", err)
		}
	})
	config := cluster.RESTConfig()
	config.QPS = -1 // no limit, as in envtest: that of client-go would slow an operator down
	return config
}
