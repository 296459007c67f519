package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is a change that admission made to an object and that affects how the object is deleted.
type Change struct {
	// Text describes the change: `adds container "sidecar"`.
	Text string
	// Containers is set when the change matters only where the containers of pods run.
	Containers bool
	// Holds is set when another controller must remove a finalizer before the object can be deleted.
	Holds bool
}

// Changes compares a created object with the object that was sent. Fields that the API server sets itself, and fields that do not affect
// deletion, are ignored.
func Changes(sent, returned *unstructured.Unstructured) []Change {
	changes := slices.Concat(finalizerChanges(sent, returned), ownerChanges(sent, returned))
	for _, path := range podSpecs {
		before, ok, _ := unstructured.NestedMap(sent.Object, path...)
		after, still, _ := unstructured.NestedMap(returned.Object, path...)
		if ok && still && isPodSpec(before) {
			changes = append(changes, podChanges(before, after)...)
		}
	}
	return changes
}

// IsBuiltIn reports whether a finalizer is in a domain of Kubernetes. Built-in admission plugins add some: kubernetes.io/pvc-protection.
func IsBuiltIn(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/") // customresourcecleanup.apiextensions.k8s.io has no name
	return strings.HasSuffix("."+domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
}

func finalizerChanges(sent, returned *unstructured.Unstructured) []Change {
	var changes []Change
	for _, finalizer := range returned.GetFinalizers() {
		if !slices.Contains(sent.GetFinalizers(), finalizer) && !IsBuiltIn(finalizer) {
			changes = append(changes, Change{Text: fmt.Sprintf("adds finalizer %q", finalizer), Holds: true})
		}
	}
	for _, finalizer := range sent.GetFinalizers() {
		if !slices.Contains(returned.GetFinalizers(), finalizer) {
			changes = append(changes, Change{Text: fmt.Sprintf("drops finalizer %q", finalizer)})
		}
	}
	return changes
}

func ownerChanges(sent, returned *unstructured.Unstructured) []Change {
	if equality.Semantic.DeepEqual(sent.GetOwnerReferences(), returned.GetOwnerReferences()) {
		return nil
	}
	return []Change{{Text: "changes the owner references"}}
}

// podSpecs are the paths of pod specs in objects.
var podSpecs = [][]string{
	{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"},
}

func isPodSpec(spec map[string]any) bool { return spec["containers"] != nil }

// podDefaults are the API server's defaults for missing fields.
var podDefaults = map[string]any{"terminationGracePeriodSeconds": int64(30), "schedulerName": "default-scheduler"}

func podChanges(sent, returned map[string]any) []Change {
	var changes []Change
	for _, field := range []string{"terminationGracePeriodSeconds", "nodeName", "schedulerName"} {
		before := sent[field]
		if before == nil {
			before = podDefaults[field]
		}
		if after := returned[field]; fmt.Sprint(before) != fmt.Sprint(after) && !strings.HasPrefix(fmt.Sprint(before), "-") { // the server corrects negative values
			changes = append(changes, Change{Text: fmt.Sprintf("sets %s to %v", field, after)})
		}
	}
	changes = slices.Concat(changes, droppedFields(sent, returned), tolerationChanges(sent, returned))
	for _, field := range []string{"containers", "initContainers"} {
		changes = append(changes, containerChanges(field, sent, returned)...)
	}
	return changes
}

// droppedFields returns the fields of a pod spec that are missing: webhooks that were built for an older Kubernetes drop what they do not know.
func droppedFields(sent, returned map[string]any) []Change {
	var changes []Change
	for _, field := range slices.Sorted(maps.Keys(sent)) {
		if _, ok := returned[field]; !ok && !isEmpty(sent[field]) {
			changes = append(changes, Change{Text: "drops " + field})
		}
	}
	return changes
}

// isEmpty reports whether the API server may omit a value.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// defaulted are the keys of the tolerations that the admission plugin DefaultTolerationSeconds adds.
var defaulted = []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}

// tolerationChanges returns the added tolerations that keep a pod on a node whose taint would evict it.
func tolerationChanges(sent, returned map[string]any) []Change {
	var changes []Change
	before := elements(sent["tolerations"])
	for _, toleration := range elements(returned["tolerations"]) {
		known := slices.ContainsFunc(before, func(other map[string]any) bool { return equality.Semantic.DeepEqual(other, toleration) })
		evicts := toleration["effect"] == nil || toleration["effect"] == "NoExecute"
		key, _ := toleration["key"].(string)
		if known || !evicts || slices.Contains(defaulted, key) {
			continue
		}
		if key == "" {
			key = "every taint"
		}
		changes = append(changes, Change{Text: fmt.Sprintf("adds a toleration of %s", key)})
	}
	return changes
}

// containerChanges returns added and removed containers, and changed hooks.
func containerChanges(field string, sent, returned map[string]any) []Change {
	noun := strings.TrimSuffix(field, "s")
	before, after := byName(sent[field]), byName(returned[field])
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(after)) {
		known, ok := before[name]
		switch {
		case !ok:
			changes = append(changes, Change{Text: fmt.Sprintf("adds %s %q", noun, name), Containers: true})
		case changesHook(known["lifecycle"], after[name]["lifecycle"]):
			changes = append(changes, Change{Text: fmt.Sprintf("changes the lifecycle hooks of %s %q", noun, name), Containers: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			changes = append(changes, Change{Text: fmt.Sprintf("removes %s %q", noun, name), Containers: true})
		}
	}
	return changes
}

// changesHook compares only which hooks exist, because the API server sets defaults within them.
func changesHook(sent, returned any) bool {
	before, _ := sent.(map[string]any)
	after, _ := returned.(map[string]any)
	return !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
}

func byName(list any) map[string]map[string]any {
	named := map[string]map[string]any{}
	for _, element := range elements(list) {
		name, _ := element["name"].(string)
		named[name] = element
	}
	return named
}

func elements(list any) []map[string]any {
	values, _ := list.([]any)
	var maps []map[string]any
	for _, value := range values {
		if element, ok := value.(map[string]any); ok {
			maps = append(maps, element)
		}
	}
	return maps
}
