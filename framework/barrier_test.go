package framework

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestCanary(t *testing.T) {
	g := NewWithT(t)
	live := stored("owner-abc", dying, Held)
	live.Object["status"] = map[string]any{"phase": "Running"}
	live.Object["data"] = map[string]any{"a": "b"}
	g.Expect(Canary(live).Object).To(Equal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
		"metadata": map[string]any{"name": "canary", "labels": map[string]any{client.CanaryLabel: "true"}},
	}))
	g.Expect(live).To(BeTerminating(), "the object itself is left as it was")
}
