package framework

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

func TestServed(t *testing.T) {
	config, _ := apiservertest.Start(t, http.NotFound)
	connected, err := session.Connect(config, session.Config{Run: "dcb2c4d5f6", Worker: 2, Namespace: "dcb2c4d5f6-2"})
	if err != nil {
		t.Fatal(err)
	}
	cluster := NewCluster(connected, "abc")
	budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, "a", "b") }
	type kinds []func(name string) *Object
	for _, test := range []struct {
		name  string
		kinds kinds
		want  []string
	}{
		{"all", kinds{fixtures.ConfigMap, fixtures.UnscheduledPod}, []string{"ConfigMap", "Pod"}},
		{"some", kinds{budget, fixtures.Service, fixtures.ReplicaSet}, []string{"ReplicaSet"}},
		{"each once", kinds{fixtures.Secret, fixtures.Secret, budget}, []string{"Secret"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var served []string
			for _, kind := range cluster.Served(t.Context(), test.kinds...) {
				served = append(served, kind("any").GetKind())
			}
			g.Expect(served).To(Equal(test.want))
			g.Expect(cluster.FirstServed(t.Context(), test.kinds...)("any").GetKind()).To(Equal(test.want[0]))
		})
	}
}
