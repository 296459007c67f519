package describe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changes describes how labels and spec.selector changed between two states of an object. The earlier state is nil for a new object.
func Changes(before, after *unstructured.Unstructured) []string {
	if before == nil {
		return nil
	}
	var changes []string
	was, now := before.GetLabels(), after.GetLabels()
	both := map[string]string{}
	maps.Copy(both, was)
	maps.Copy(both, now)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		from, had := was[key]
		to, has := now[key]
		switch {
		case !had:
			changes = append(changes, fmt.Sprintf("label %s=%s added", key, to))
		case !has:
			changes = append(changes, fmt.Sprintf("label %s=%s removed", key, from))
		case from != to:
			changes = append(changes, fmt.Sprintf("label %s: %s to %s", key, from, to))
		}
	}
	from, _, _ := unstructured.NestedFieldNoCopy(before.Object, "spec", "selector")
	to, _, _ := unstructured.NestedFieldNoCopy(after.Object, "spec", "selector")
	if !reflect.DeepEqual(from, to) {
		changes = append(changes, fmt.Sprintf("spec.selector: %s to %s", inJSON(from), inJSON(to)))
	}
	return changes
}

func inJSON(value any) string {
	if value == nil {
		return "none"
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}
