package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

func TestEvictionsByOthersAreTold(t *testing.T) {
	pod := fixtures.GhostBoundPod("pod")
	pod.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
	}}
	pod.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)},
		{Manager: "descheduler", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"DisruptionTarget\"}":{".":{}}}}}`)},
	})
	other := fixtures.GhostBoundPod("other")
	other.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
	}}
	evicting := []v1alpha1.Request{{Subresource: "eviction"}}
	for name, test := range map[string]struct {
		seen *Object
		sent []v1alpha1.Request
		want string
	}{
		"by somebody else":    {pod, nil, `Pod "pod" was evicted by descheduler (policy/v1 Eviction)`},
		"by the spec":         {pod, evicting, ""},
		"deleted differently": {other, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(foreignEviction([]journal.Event{{Object: test.seen}}, test.sent)).To(Equal(test.want))
		})
	}
}
