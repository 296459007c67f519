package framework

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// evictedByAPI is the reason of the condition DisruptionTarget of a pod that was evicted by the Eviction API (KEP-3329).
const evictedByAPI = "EvictionByEvictionAPI"

// foreignEviction tells that a pod was evicted although the spec evicts none, and by whom as far as the pod's managedFields tell. It is
// empty where none was. No controller of Kubernetes itself uses the Eviction API: deschedulers, autoscalers and people who drain nodes do.
func foreignEviction(seen []journal.Event, sent []v1alpha1.Request) string {
	if slices.ContainsFunc(sent, func(request v1alpha1.Request) bool { return request.Subresource == "eviction" }) {
		return ""
	}
	for _, event := range seen {
		evicted := slices.ContainsFunc(describe.Conditions(event.Object), func(condition metav1.Condition) bool {
			return condition.Type == string(corev1.DisruptionTarget) && condition.Reason == evictedByAPI
		})
		if evicted {
			by := cmp.Or(disrupter(event.Object), "somebody else")
			return fmt.Sprintf("%s was evicted by %s (policy/%s Eviction)", client.Title(event.Object), by, policyv1.SchemeGroupVersion.Version)
		}
	}
	return ""
}

// disrupter is the field manager that wrote a pod's condition DisruptionTarget; empty where managedFields do not tell.
func disrupter(pod *Object) string {
	for _, entry := range pod.GetManagedFields() {
		var written map[string]map[string]map[string]any
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &written) != nil {
			continue
		}
		for condition := range written["f:status"]["f:conditions"] {
			if strings.Contains(condition, `"`+string(corev1.DisruptionTarget)+`"`) {
				return entry.Manager
			}
		}
	}
	return ""
}
