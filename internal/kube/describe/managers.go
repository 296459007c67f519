package describe

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FinalizerManagers returns the field managers that set a finalizer, sorted. It is empty where managedFields shows none.
func FinalizerManagers(object *unstructured.Unstructured, finalizer string) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		if _, set, _ := unstructured.NestedFieldNoCopy(WrittenFields(entry), "f:metadata", "f:finalizers", fmt.Sprintf("v:%q", finalizer)); set {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

// Writers returns the field managers that wrote between two states of an object, sorted: those with an entry in managedFields that is new,
// or that has another time. The earlier state is nil for a new object. The server keeps no entry for a write that only removes fields, and
// the time of an entry has a resolution of a second.
func Writers(before, after *unstructured.Unstructured) []string {
	type key struct {
		manager, subresource string
		operation            metav1.ManagedFieldsOperationType
	}
	known := map[key]*metav1.Time{}
	if before != nil {
		for _, entry := range before.GetManagedFields() {
			known[key{entry.Manager, entry.Subresource, entry.Operation}] = entry.Time
		}
	}
	var writers []string
	for _, entry := range after.GetManagedFields() {
		at, ok := known[key{entry.Manager, entry.Subresource, entry.Operation}]
		if !ok || !at.Equal(entry.Time) {
			writers = append(writers, entry.Manager)
		}
	}
	slices.Sort(writers)
	return slices.Compact(writers)
}
