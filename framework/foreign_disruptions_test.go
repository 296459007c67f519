package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

func TestForeignDisruption(t *testing.T) {
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
	evicting := []v1alpha1.Request{{Subresource: "eviction"}}
	for name, test := range map[string]struct {
		seen *Object
		sent []v1alpha1.Request
		want string
	}{
		"by somebody else":             {pod, nil, `Pod "pod" was evicted by descheduler (policy/v1 Eviction)`},
		"by the spec":                  {pod, evicting, ""},
		"deleted differently":          {other, nil, ""},
		"by the pod garbage collector": {collected, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(foreignDisruption([]journal.Event{{Object: test.seen}}, test.sent)).To(Equal(test.want))
		})
	}
}

func TestOutrun(t *testing.T) {
	orphan := fixtures.GhostBoundPod("orphan")
	orphan.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "PodGC: node no longer exists",
	}}}
	held := orphan.DeepCopy()
	held.SetFinalizers([]string{Hold})
	failed := func(manager string, manifest *Object) *Object {
		now := metav1.Now()
		manifest.SetDeletionTimestamp(&now)
		manifest.Object["status"] = map[string]any{"phase": "Failed"}
		manifest.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:phase":{}}}`)}}})
		return manifest
	}
	const byNode = `Pod "orphan" was deleted by the pod garbage collector: PodGC: node no longer exists`
	for name, test := range map[string]struct {
		seen     *Object
		behavior v1alpha1.Behavior
		want     string
	}{
		"without a Node":         {orphan, v1alpha1.Behavior{}, byNode},
		"with other controllers": {orphan, v1alpha1.Behavior{Features: []v1alpha1.Feature{v1alpha1.KCM}}, byNode},
		"held":                   {held, v1alpha1.Behavior{}, ""},
		"which is tested":        {orphan, v1alpha1.Behavior{Slow: true}, ""},
		"not scheduled":          {failed("kcm", fixtures.UnscheduledPod("pod")), v1alpha1.Behavior{}, `Pod "pod" was deleted by the pod garbage collector (field manager kcm): it is terminating and has no node`},
		"failed by the spec":     {failed(Domain, fixtures.UnscheduledPod("pod")), v1alpha1.Behavior{}, ""},
		"failed by its kubelet":  {failed("kubelet", fixtures.GhostBoundPod("pod")), v1alpha1.Behavior{}, ""},
		"another kind":           {fixtures.ConfigMap("object"), v1alpha1.Behavior{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(outrun([]journal.Event{{Object: test.seen}}, test.behavior)).To(Equal(test.want))
		})
	}
}
