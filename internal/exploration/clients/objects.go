package clients

import (
	"cmp"
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// HeldBy is the finalizer that holds an object from its creation on.
const HeldBy = "a"

// Round is what the clients of a round share.
type Round struct {
	Number int
	Names  []string
	Began  time.Time
	// Homes are the namespaces of the objects by their names; nil if all are in that of the run.
	Homes map[string]string
	// Manifest is what the objects are made from, and Labels are on all objects of the run.
	Manifest *client.Object
	Labels   labels.Set
	// Owners may own the round's objects: other objects by the names that programs have for them, "" standing for any other name. Those that the
	// run may not create are nil.
	Owners map[string]*client.Object
	// Current returns the state of an object as a watch has delivered it last; empty if it does not exist.
	Current func(name string) model.Object
	// State is what the scenario itself keeps of the round; nil if it keeps nothing.
	State any
	// Stale makes requests require the uid that their client saw last. Otherwise they require the current one, so that it is known which objects
	// clients deleted.
	Stale bool
	// Children returns what an operator has created for the object of a name, and Restart stops the operator for a while; nil if no operator of the
	// run's resource is known, or the run cannot restart it.
	Children func(name string) []*client.Object
	Restart  func(ctx context.Context, down time.Duration) error
}

// Selected are the labels of the round's objects.
func (r *Round) Selected() labels.Set {
	return labels.Merge(r.Labels, labels.Set{watching.RoundLabel: strconv.Itoa(r.Number)})
}

// Named is a manifest with a name and labels.
func Named(manifest *client.Object, name string, more labels.Set) *client.Object {
	object := manifest.DeepCopy()
	object.SetName(name)
	object.SetLabels(labels.Merge(object.GetLabels(), more))
	return object
}

// finalizersOf are the finalizers that the model calls by short names.
func finalizersOf(names model.Names) []string {
	finalizers := []string{}
	for _, name := range names.List() {
		finalizers = append(finalizers, watching.FinalizerOf(name))
	}
	return finalizers
}

// write makes a change to an object.
func (r *Round) write(object *client.Object, change model.Change) {
	if change.Label != nil {
		object.SetLabels(labels.Merge(object.GetLabels(), labels.Set{watching.StateLabel: *change.Label}))
		if *change.Label == "" {
			unstructured.RemoveNestedField(object.Object, "metadata", "labels", watching.StateLabel)
		}
	}
	if change.Value != nil {
		object.SetAnnotations(labels.Merge(object.GetAnnotations(), labels.Set{watching.ValueAnnotation: *change.Value}))
	}
	if change.Finalizers != nil {
		object.SetFinalizers(finalizersOf(*change.Finalizers))
	}
	if change.Owners != nil {
		object.SetOwnerReferences(r.ownersOf(*change.Owners))
	}
}

// ownersOf are references to owners, which are objects of the same kind, except those in Owners.
func (r *Round) ownersOf(names model.Names) []metav1.OwnerReference {
	references := []metav1.OwnerReference{}
	for _, owner := range model.OwnersOf(names) {
		like := r.Owners[""]
		for _, other := range r.Owners {
			if other != nil && owner.UID == string(other.GetUID()) {
				like = other
			}
		}
		references = append(references, metav1.OwnerReference{
			APIVersion: like.GetAPIVersion(), Kind: like.GetKind(), Name: owner.Name, UID: types.UID(owner.UID), BlockOwnerDeletion: &owner.Blocks,
		})
	}
	return references
}

// missing is the uid of owners that never existed.
const missing = "00000000-0000-4000-8000-000000000000"

// resolve names owners as they are sent: those of which a program knows only the index, by the uid that their names have now. Those that the run
// may not create are missing.
func (a *Actor) resolve(owners *model.Names) *model.Names {
	if owners == nil {
		return nil
	}
	var resolved []string
	for _, owner := range model.OwnersOf(*owners) {
		known, special := a.Owners[owner.Name]
		if !special {
			known = a.Owners[""]
		}
		if index := generate.IndexOf(owner); index >= 0 && index < len(a.Names) {
			owner.Name, owner.UID = a.Names[index], a.uid(a.Names[index])
		} else if known != nil {
			owner.Name, owner.UID = known.GetName(), string(known.GetUID())
		}
		owner.UID = cmp.Or(owner.UID, missing)
		resolved = append(resolved, owner.String())
	}
	return new(model.NamesOf(resolved...))
}

// uid is the uid that a name has now, as far as the watch or the client itself has seen it; empty if they have not.
func (a *Actor) uid(name string) string {
	if uid := a.Current(name).UID; uid != "" {
		return uid
	}
	if seen, known := a.seen[name]; known {
		return string(seen.GetUID())
	}
	return ""
}

// mergePatch is a change as a merge patch, for the object with a resourceVersion if that is not empty.
func (r *Round) mergePatch(change model.Change, resourceVersion string) map[string]any {
	patch := &client.Object{Object: map[string]any{"metadata": map[string]any{}}}
	patch.SetResourceVersion(resourceVersion)
	r.write(patch, change)
	if change.Label != nil && *change.Label == "" {
		_ = unstructured.SetNestedField(patch.Object, nil, "metadata", "labels", watching.StateLabel)
	}
	return patch.Object
}

// release removes the finalizer that an object was created with, which comes before those of the garbage collector.
func release() []any {
	first := "/metadata/finalizers/0"
	return []any{
		map[string]any{"op": "test", "path": first, "value": watching.Prefix + HeldBy},
		map[string]any{"op": "remove", "path": first},
	}
}
