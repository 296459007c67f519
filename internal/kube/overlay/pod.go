package overlay

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// everyContainer is the name in a patch that selects every container of a list.
const everyContainer = "*"

// containerLists are the lists of containers that a patch may change.
var containerLists = []string{"containers", "initContainers"}

// patch applies the pod patch to a pod or a pod template in place. It differs from kubectl patch: it does not add containers that the pod
// does not have, and it appends tolerations.
func (o Overlay) patch(pod map[string]any) error {
	for _, field := range []string{"labels", "annotations"} {
		added, _, _ := unstructured.NestedStringMap(o.PodOverlay, "metadata", field)
		addTo(pod, field, added)
	}
	wanted, _ := o.PodOverlay["spec"].(map[string]any)
	if len(wanted) == 0 {
		return nil
	}
	spec, patch := pod["spec"].(map[string]any), runtime.DeepCopyJSON(wanted)
	for _, list := range containerLists {
		if entries := entriesFor(spec[list], patch[list]); len(entries) > 0 {
			patch[list] = entries
		} else {
			delete(patch, list)
		}
	}
	if added, ok := patch["tolerations"].([]any); ok {
		patch["tolerations"] = joined(spec["tolerations"], added)
	}
	if isMirror(pod) {
		delete(patch, "imagePullSecrets")
	}
	patched, err := strategicpatch.StrategicMergeMapPatch(spec, patch, corev1.PodSpec{})
	if err == nil {
		pod["spec"] = map[string]any(patched)
	}
	return err
}

// entriesFor returns the entries of a patch for the existing containers, by name.
func entriesFor(there, patch any) []any {
	var entries []any
	containers, _ := there.([]any)
	wanted, _ := patch.([]any)
	for _, container := range containers {
		name, _ := container.(map[string]any)["name"].(string)
		for _, element := range wanted {
			entry, ok := element.(map[string]any)
			if !ok || name == "" || entry["name"] != name && entry["name"] != everyContainer {
				continue
			}
			entry = maps.Clone(entry)
			entry["name"] = name
			entries = append(entries, entry)
		}
	}
	return entries
}

// joined returns the tolerations of a pod with the added ones, without duplicates.
func joined(there any, added []any) []any {
	tolerations, _ := there.([]any)
	tolerations = slices.Clone(tolerations)
	for _, toleration := range added {
		same := func(other any) bool { return equality.Semantic.DeepEqual(other, toleration) }
		if !slices.ContainsFunc(tolerations, same) {
			tolerations = append(tolerations, toleration)
		}
	}
	return tolerations
}
