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
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

const (
	// evictedByAPI is the reason in the condition DisruptionTarget of a pod that the Eviction API evicted (KEP-3329).
	evictedByAPI = "EvictionByEvictionAPI"
	// deletedByPodGC is the reason for a pod that the pod garbage collector deletes, for example because its node does not exist.
	deletedByPodGC = "DeletionByPodGC"
)

// foreignDisruption describes a pod that was evicted although the spec evicts none, or that the pod garbage collector deleted although the
// spec does not require the kube-controller-manager. It is empty when there is none. No controller of Kubernetes uses the Eviction API;
// deschedulers, autoscalers and administrators who drain nodes do.
func foreignDisruption(seen []journal.Event, sent []v1alpha1.Request, needs []v1alpha1.Feature) string {
	evicts := slices.ContainsFunc(sent, func(request v1alpha1.Request) bool { return request.Subresource == "eviction" })
	for _, event := range seen {
		disrupted := meta.FindStatusCondition(describe.Conditions(event.Object), string(corev1.DisruptionTarget))
		switch {
		case disrupted == nil:
		case disrupted.Reason == evictedByAPI && !evicts:
			by := cmp.Or(disrupter(event.Object), "an unknown client")
			return fmt.Sprintf("%s was evicted by %s (policy/%s Eviction)", client.Title(event.Object), by, policyv1.SchemeGroupVersion.Version)
		case disrupted.Reason == deletedByPodGC && !slices.Contains(needs, v1alpha1.KCM):
			return fmt.Sprintf("%s was deleted by the pod garbage collector: %s", client.Title(event.Object), disrupted.Message)
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
