package describe

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Name names an object with its kind and namespace: ConfigMap ns/name.
func Name(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// Remainder describes an object that should be gone: how long it has been terminating, and what holds it: ConfigMap ns/name, terminating
// for 1m30s, waits for finalizer example.com/free (set by field manager example).
func Remainder(object *unstructured.Unstructured, now time.Time) string {
	text := Name(object)
	if at := object.GetDeletionTimestamp(); at != nil {
		text += fmt.Sprintf(", terminating for %s", max(0, now.Sub(at.Time)).Round(time.Second))
	} else {
		text += fmt.Sprintf(", not terminating, %s old", max(0, now.Sub(object.GetCreationTimestamp().Time)).Round(time.Second))
	}
	var holds []string
	for _, finalizer := range object.GetFinalizers() {
		holds = append(holds, "finalizer "+finalizer+setBy(object, finalizer))
	}
	if len(holds) > 0 {
		text += ", waits for " + strings.Join(holds, " and ")
	}
	// A CustomResourceDefinition waits for its objects, and its condition states which step failed.
	if condition := meta.FindStatusCondition(Conditions(object), "Terminating"); condition != nil {
		text += fmt.Sprintf(" (%s: %s)", condition.Reason, condition.Message)
	}
	return text
}

// WrittenFields decodes the fields of an entry of managedFields, in its notation: {"f:metadata": {"f:labels": {}}}. It is nil for an entry
// that lists none. The raw bytes are encoded first because apimachinery 0.36 renamed their accessor.
func WrittenFields(entry metav1.ManagedFieldsEntry) map[string]any {
	var fields map[string]any
	if encoded, err := json.Marshal(entry.FieldsV1); err != nil || json.Unmarshal(encoded, &fields) != nil {
		return nil
	}
	return fields
}

// setBy names the field managers that set a finalizer. Changes by admission have none.
func setBy(object *unstructured.Unstructured, finalizer string) string {
	switch managers := FinalizerManagers(object, finalizer); {
	case len(managers) > 0:
		return " (set by field manager " + strings.Join(managers, " and ") + ")"
	case len(object.GetManagedFields()) > 0:
		return " (set by no field manager, as by admission)"
	}
	return ""
}
