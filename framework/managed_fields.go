package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// Controllers also write objects: a status, annotations, finalizers. metadata.managedFields identifies these writes, so that matchers and
// histories can ignore them. Fields that are essential to deletion are never ignored: deletionTimestamp, grace period, owner references,
// the garbage collector's finalizers, and everything of the harness.

// equalIgnoringOtherManagers reports whether an object is unchanged except for writes of other managers. A new resourceVersion without such
// a write is a change.
func equalIgnoringOtherManagers(earlier, later *Object) bool {
	return earlier.GetUID() == later.GetUID() &&
		(earlier.GetResourceVersion() == later.GetResourceVersion() || ChangedByOtherManagers(earlier, later))
}

// ChangedByOtherManagers reports whether only other managers have changed an object between two states.
func ChangedByOtherManagers(earlier, later *Object) bool {
	return len(changedByUs(earlier, later)) == 0 &&
		(!equality.Semantic.DeepEqual(content(earlier), content(later)) || !equality.Semantic.DeepEqual(writesOfOthers(earlier), writesOfOthers(later)))
}

// writesOfOthers are the managedFields of other managers. They show writes that were undone, such as those of a controller with a stale cache.
func writesOfOthers(object *Object) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(entry.Manager, client.Domain) })
}

// changedByUs returns the paths of the fields that differ between two states and that other managers have not written.
func changedByUs(earlier, later *Object, except ...string) []string {
	others := writtenByOthers(earlier, later)
	before, after := own(earlier, others), own(later, others)
	for _, field := range except {
		unstructured.RemoveNestedField(before, "metadata", field)
		unstructured.RemoveNestedField(after, "metadata", field)
	}
	return differing(before, after, "")
}

// differing returns the paths of the fields in which two values differ.
func differing(a, b any, path string) []string {
	inA, isA := a.(map[string]any)
	inB, isB := b.(map[string]any)
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	if !isA || !isB {
		return []string{path}
	}
	names := maps.Clone(inA)
	maps.Copy(names, inB)
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		paths = append(paths, differing(inA[name], inB[name], strings.TrimPrefix(path+"."+name, "."))...)
	}
	return paths
}

// fields are fields of an object in the notation of managedFields ("f:metadata": {"f:labels": {}}).
type fields map[string]any

// writtenByOthers returns the fields that other managers have written in any of the states. If the server does not track managers, the
// status counts as theirs.
func writtenByOthers(states ...*Object) fields {
	others, ours, known := fields{}, fields{}, false
	for _, state := range states {
		for _, entry := range state.GetManagedFields() {
			written := describe.WrittenFields(entry)
			known = known || written != nil
			if strings.HasPrefix(entry.Manager, client.Domain) {
				ours.add(written)
			} else {
				others.add(written)
			}
		}
	}
	if !known {
		return fields{"f:status": fields{}}
	}
	if _, ok := others["f:status"]; ok {
		others["f:status"] = fields{} // as a whole: lists in it contain entries of several managers
		delete(ours, "f:status")
	}
	others.remove(ours)
	return others
}

// add adds fields.
func (f fields) add(more map[string]any) {
	for name, part := range more {
		inside, _ := part.(map[string]any)
		known, ok := f[name].(fields)
		if !ok {
			known = fields{}
			f[name] = known
		}
		known.add(inside)
	}
}

// remove removes fields, and parents that become empty.
func (f fields) remove(less fields) {
	for name, part := range less {
		known, ok := f[name].(fields)
		if !ok {
			continue
		}
		known.remove(part.(fields))
		if len(known) == 0 {
			delete(f, name)
		}
	}
}

// content returns an object without fields that change with every write.
func content(object *Object) *Object {
	rest := object.DeepCopy()
	unstructured.RemoveNestedField(rest.Object, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(rest.Object, "metadata", "managedFields")
	return rest
}

// own returns the content of an object without the fields that other managers have written.
func own(object *Object, others fields) map[string]any {
	rest := content(object)
	rest.SetFinalizers(nil)
	WithFinalizers(slices.DeleteFunc(object.GetFinalizers(), client.IsOfOtherManager)...)(rest)
	metadata, _ := rest.Object["metadata"].(map[string]any)
	inMetadata, _ := others["f:metadata"].(fields)
	for _, kind := range []string{"labels", "annotations"} {
		written, _ := inMetadata["f:"+kind].(fields)
		if values, are := metadata[kind].(map[string]any); are {
			if written.clear(values); len(values) == 0 {
				delete(metadata, kind)
			}
		}
	}
	elsewhere := maps.Clone(others)
	delete(elsewhere, "f:metadata")
	elsewhere.clear(rest.Object)
	if others.incrementGeneration() {
		delete(metadata, "generation")
	}
	return rest.Object
}

// incrementGeneration reports whether a write of the fields may increment an object's generation.
func (f fields) incrementGeneration() bool {
	for name := range f {
		if name != "f:metadata" && name != "f:status" {
			return true
		}
	}
	return false
}

// clear removes fields from a value. A list with such entries is removed entirely.
func (f fields) clear(value map[string]any) {
	for name, part := range f {
		field, ok := strings.CutPrefix(name, "f:")
		if !ok || strings.HasPrefix(field, client.Domain) {
			continue
		}
		inside, nested := value[field].(map[string]any)
		if parts := part.(fields); nested && len(parts) > 0 {
			if parts.clear(inside); len(inside) > 0 {
				continue
			}
		}
		delete(value, field)
	}
}

// heldByOtherManagers reports whether an object is terminating and only other managers' finalizers remain.
func heldByOtherManagers(object *Object) bool {
	finalizers := object.GetFinalizers()
	return object.GetDeletionTimestamp() != nil && len(finalizers) > 0 &&
		!slices.ContainsFunc(finalizers, func(finalizer string) bool { return !client.IsOfOtherManager(finalizer) })
}

// HaveIncrementedGeneration matches an object whose generation is by one greater than in an earlier state. Writes of other managers may have
// incremented it further. The generation of a kind without generations is 0.
func HaveIncrementedGeneration(earlier *Object) types.GomegaMatcher {
	expected := earlier.GetGeneration()
	if expected > 0 {
		expected++
	}
	return Property(fmt.Sprintf("have generation %d", expected), func(now *Object) bool {
		generation := now.GetGeneration()
		return generation == expected || generation > expected && writtenByOthers(earlier, now).incrementGeneration()
	}, func(now *Object) string { return fmt.Sprintf("generation %d", now.GetGeneration()) })
}

// BeAsBeforeDeletion matches an object in which a deletion has changed only the fields that deletions write.
func BeAsBeforeDeletion(object *Object) types.GomegaMatcher {
	changed := func(now *Object) []string {
		return changedByUs(object, now, "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
	}
	return Property("be unchanged by its deletion ("+describe.Object(object)+")",
		func(now *Object) bool { return len(changed(now)) == 0 },
		func(now *Object) string { return fmt.Sprintf("changed %q", changed(now)) })
}
