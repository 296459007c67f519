package framework

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// Objects of a resource that a run is told to judge may have a controller: it writes their status, adds finalizers of its own, and
// fills in what it likes. What a spec finds changed then was the controller's doing, or the server's. The server keeps account of
// who manages which field (metadata.managedFields), which tells the two apart.

// onlyOthersWrote says of an object that was stored anew since that another manager has written it, and nothing is different but what other
// managers manage. What decides over a deletion nobody else may have changed, but for finalizers of their own. It is so only of
// resources that a run is told to judge.
func onlyOthersWrote(earlier, now *Object) bool {
	if earlier.GetAnnotations()[client.ResourceAnnotation] == "" || earlier.GetUID() != now.GetUID() {
		return false
	}
	theirs, wrote := ofOthers(earlier, now)
	return wrote && equality.Semantic.DeepEqual(deciding(earlier, theirs), deciding(now, theirs)) &&
		equality.Semantic.DeepEqual(without(earlier, theirs), without(now, theirs))
}

// deciding is what decides over an object's deletion. Finalizers that others manage are left out.
func deciding(object *Object, theirs *fieldpath.Set) []any {
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(finalizer string) bool {
		return theirs.Has(fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(finalizer)))
	})
	return []any{finalizers, object.GetOwnerReferences(), object.GetDeletionTimestamp(), object.GetDeletionGracePeriodSeconds()}
}

// ofOthers are the fields of an object that other managers than the run manage, and whether one of them has written it since.
func ofOthers(earlier, now *Object) (theirs *fieldpath.Set, wrote bool) {
	theirs = fieldpath.NewSet()
	before := earlier.GetManagedFields()
	for _, entry := range now.GetManagedFields() {
		if isOurs(entry) || entry.FieldsV1 == nil {
			continue
		}
		fields := fieldpath.NewSet()
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // what cannot be read is not theirs
		}
		theirs = theirs.Union(fields)
		if !slices.ContainsFunc(before, func(known metav1.ManagedFieldsEntry) bool { return equality.Semantic.DeepEqual(known, entry) }) {
			wrote = true
		}
	}
	return theirs, wrote
}

// isOurs says whether fields are managed by the run: under the name that client-go gives this program, or under one of the harness's.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	program, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	return entry.Manager == program || strings.HasPrefix(entry.Manager, Domain)
}

// without is an object's content without fields of others, without its status and what the server counts, and without what decides over
// its deletion.
func without(object *Object, fields *fieldpath.Set) map[string]any {
	content := object.DeepCopy()
	for _, path := range [][]string{
		{"status"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "managedFields"},
		{"metadata", "finalizers"}, {"metadata", "ownerReferences"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
	} {
		unstructured.RemoveNestedField(content.Object, path...)
	}
	known, err := typed.DeducedParseableType.FromUnstructured(content.Object)
	if err != nil {
		return content.Object
	}
	rest, is := known.RemoveItems(fields).AsValue().Unstructured().(map[string]any)
	if !is {
		return content.Object
	}
	return rest
}

// withoutOthers are events without those in which another manager wrote what is its own, and nothing else happened.
func withoutOthers(events []journal.Event) []journal.Event {
	last := map[types.UID]*Object{}
	return slices.DeleteFunc(events, func(event journal.Event) bool {
		before, uid := last[event.Object.GetUID()], event.Object.GetUID()
		last[uid] = event.Object
		return before != nil && event.Type == watch.Modified && onlyOthersWrote(before, event.Object)
	})
}
