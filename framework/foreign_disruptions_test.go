package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

func TestDisruptionsByOthersAreNamed(t *testing.T) {
	pod := fixtures.GhostBoundPod("pod")
	pod.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
	}}
	pod.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:phase":{}}}`)}},
		{Manager: "descheduler", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:conditions":{"k:{\"type\":\"DisruptionTarget\"}":{".":{}}}}}`)}},
	})
	other := fixtures.GhostBoundPod("other")
	other.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
	}}
	collected := fixtures.GhostBoundPod("orphan")
	collected.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
	}}}
	kcm := []v1alpha1.Feature{v1alpha1.KCM}
	evicting := []v1alpha1.Request{{Subresource: "eviction"}}
	for name, test := range map[string]struct {
		seen  *Object
		sent  []v1alpha1.Request
		needs []v1alpha1.Feature
		want  string
	}{
		"by somebody else":                            {pod, nil, kcm, `Pod "pod" was evicted by descheduler (policy/v1 Eviction)`},
		"by the spec":                                 {pod, evicting, nil, ""},
		"deleted differently":                         {other, nil, nil, ""},
		"by the pod garbage collector":                {collected, nil, nil, `Pod "orphan" was deleted by the pod garbage collector: PodGC: node no longer exists`},
		"by the pod garbage collector that is tested": {collected, nil, kcm, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(foreignDisruption([]journal.Event{{Object: test.seen}}, test.sent, test.needs)).To(Equal(test.want))
		})
	}
}
