package framework

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

const (
	// evictedByAPI is the reason in the condition DisruptionTarget of a pod that the Eviction API evicted (KEP-3329).
	evictedByAPI = "EvictionByEvictionAPI"
	// deletedByPodGC is the reason for a pod that the pod garbage collector deletes, for example because its node does not exist.
	deletedByPodGC = "DeletionByPodGC"
)

// foreignDisruption describes a pod that was evicted although the spec evicts none; empty when there is none. No controller of Kubernetes
// uses the Eviction API; deschedulers, autoscalers and administrators who drain nodes do.
func foreignDisruption(seen []journal.Event, sent []v1alpha1.Request) string {
	evicts := slices.ContainsFunc(sent, func(request v1alpha1.Request) bool { return request.Subresource == "eviction" })
	for _, event := range seen {
		disrupted := meta.FindStatusCondition(describe.Conditions(event.Object), string(corev1.DisruptionTarget))
		if disrupted != nil && disrupted.Reason == evictedByAPI && !evicts {
			by := cmp.Or(disrupter(event.Object), "an unknown client")
			return fmt.Sprintf("%s was evicted by %s (policy/%s Eviction)", client.Title(event.Object), by, policyv1.SchemeGroupVersion.Version)
		}
	}
	return ""
}

// outrun describes a pod that the pod garbage collector has ended before the spec was through with it; empty when there is none. It ends
// pods of a node that does not exist after fixtures.GhostLife, and terminating pods without a node within 20 s. On a busy cluster a spec may
// take longer. A hold keeps a pod from being removed, and the slow specs are about the pod garbage collector.
func outrun(seen []journal.Event, behavior v1alpha1.Behavior) string {
	if behavior.Slow {
		return ""
	}
	for _, event := range seen {
		pod := event.Object
		disrupted := meta.FindStatusCondition(describe.Conditions(pod), string(corev1.DisruptionTarget))
		switch {
		case pod.GetKind() != "Pod", slices.Contains(pod.GetFinalizers(), Hold):
		case disrupted != nil && disrupted.Reason == deletedByPodGC:
			return fmt.Sprintf("%s was deleted by the pod garbage collector: %s", client.Title(pod), disrupted.Message)
		case pod.GetDeletionTimestamp() != nil && describe.Pod(pod).Spec.NodeName == "" && failer(pod) != "":
			return fmt.Sprintf("%s was deleted by the pod garbage collector (field manager %s): it is terminating and has no node", client.Title(pod), failer(pod))
		}
	}
	return ""
}

// failer returns the field manager, other than the run's, that set a pod's phase to Failed; empty when there is none.
func failer(pod *Object) string {
	for _, entry := range pod.GetManagedFields() {
		_, wrote, _ := unstructured.NestedMap(describe.WrittenFields(entry), "f:status", "f:phase")
		if wrote && entry.Manager != Domain && describe.Pod(pod).Status.Phase == corev1.PodFailed {
			return entry.Manager
		}
	}
	return ""
}

// disrupter returns the field manager that wrote a pod's condition DisruptionTarget; empty when managedFields do not contain it.
func disrupter(pod *Object) string {
	for _, entry := range pod.GetManagedFields() {
		conditions, _, _ := unstructured.NestedMap(describe.WrittenFields(entry), "f:status", "f:conditions")
		for condition := range conditions {
			if strings.Contains(condition, `"`+string(corev1.DisruptionTarget)+`"`) {
				return entry.Manager
			}
		}
	}
	return ""
}
