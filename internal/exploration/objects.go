package exploration

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// roundLabel is on the objects of a round, with its number. Lists and deletecollections select by it.
	roundLabel = client.Domain + "/round"
	// stateLabel and valueAnnotation are the label and the annotation that the model knows.
	stateLabel      = client.Domain + "/state"
	valueAnnotation = client.Domain + "/value"
	// prefix is what the names of finalizers begin with that the model calls by the rest.
	prefix = client.Domain + "/"
)

// snapshot is what the model knows of an object.
func snapshot(object *client.Object) model.Object {
	known := model.Object{
		UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion(),
		Terminating: object.GetDeletionTimestamp() != nil,
		Label:       object.GetLabels()[stateLabel],
		Value:       object.GetAnnotations()[valueAnnotation],
		Stray:       object.GetLabels()[roundLabel] == "" || object.GetLabels()[client.RunLabel] == "",
	}
	var finalizers, owners []string
	for _, finalizer := range object.GetFinalizers() {
		finalizers = append(finalizers, strings.TrimPrefix(finalizer, prefix))
	}
	for _, owner := range object.GetOwnerReferences() {
		owners = append(owners, model.Owner{
			Name: owner.Name, UID: string(owner.UID), Blocks: owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion,
		}.String())
	}
	known.Finalizers, known.Owners = model.NamesOf(finalizers...), model.NamesOf(owners...)
	return known
}

// writersOf are the field managers of an object that are none of the run's.
func writersOf(object *client.Object) []string {
	var writers []string
	for _, entry := range object.GetManagedFields() {
		if !strings.HasPrefix(entry.Manager, client.Domain) {
			writers = append(writers, entry.Manager)
		}
	}
	return writers
}

// bindToGhost binds a pod to a node that does not exist, unless it is to have none. A node's name is used once, as the pod garbage collector
// remembers missing nodes by name.
func bindToGhost(pod *client.Object, unscheduled bool) {
	if !unscheduled {
		pod.Object["spec"].(map[string]any)["nodeName"] = fixtures.GhostNode()
	}
}

// terminateWithin sets the terminationGracePeriodSeconds of a pod, unless that is nil.
func terminateWithin(pod *client.Object, seconds *int64) {
	if seconds != nil {
		pod.Object["spec"].(map[string]any)["terminationGracePeriodSeconds"] = *seconds
	}
}

// podOf is what matters for the graceful deletion of an object; nil if it is no pod.
func podOf(object *client.Object) *history.Pod {
	if object.GetKind() != "Pod" {
		return nil
	}
	pod := describe.Pod(object)
	known := &history.Pod{Scheduled: pod.Spec.NodeName != "", Grace: pod.DeletionGracePeriodSeconds}
	known.Running = slices.ContainsFunc(describe.Containers(object), func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
	if termination := pod.Spec.TerminationGracePeriodSeconds; termination != nil {
		known.Termination = *termination
	}
	if pod.DeletionTimestamp != nil {
		known.Deadline = &pod.DeletionTimestamp.Time
	}
	return known
}

// finalizersOf are the finalizers that the model calls by short names.
func finalizersOf(names model.Names) []string {
	finalizers := []string{}
	for _, name := range names.List() {
		if name != model.Foreground && name != model.Orphan {
			name = prefix + name
		}
		finalizers = append(finalizers, name)
	}
	return finalizers
}

// named is the manifest with a name and labels.
func (d *Driver) named(name string, labels map[string]string) *client.Object {
	object := d.manifest.DeepCopy()
	object.SetName(name)
	all := object.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range d.settings.Labels() {
		all[key] = value
	}
	for key, value := range labels {
		all[key] = value
	}
	object.SetLabels(all)
	return object
}

// write makes a change to an object.
func (d *Driver) write(object *client.Object, change model.Change) {
	if change.Label != nil {
		labels := object.GetLabels()
		if labels[stateLabel] = *change.Label; *change.Label == "" {
			delete(labels, stateLabel)
		}
		object.SetLabels(labels)
	}
	if change.Value != nil {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[valueAnnotation] = *change.Value
		object.SetAnnotations(annotations)
	}
	if change.Finalizers != nil {
		object.SetFinalizers(finalizersOf(*change.Finalizers))
	}
	if change.Owners != nil {
		object.SetOwnerReferences(d.ownersOf(*change.Owners))
	}
}

// ownersOf are references to owners, which are objects of the same kind, except the cluster-scoped owner.
func (d *Driver) ownersOf(names model.Names) []metav1.OwnerReference {
	references := []metav1.OwnerReference{}
	for _, owner := range model.OwnersOf(names) {
		like := d.quiet
		if d.clusterOwner != nil && owner.UID == string(d.clusterOwner.GetUID()) {
			like = d.clusterOwner
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
func (a *actor) resolve(owners *model.Names) *model.Names {
	if owners == nil {
		return nil
	}
	var resolved []string
	for _, owner := range model.OwnersOf(*owners) {
		index, known := generate.IndexOf(owner), a.quiet
		switch {
		case index >= 0 && index < len(a.round.names):
			owner.Name = a.round.names[index]
			owner.UID = cmp.Or(a.uid(owner.Name), missing)
			known = nil
		case owner.Name == generate.ClusterOwner:
			known = a.clusterOwner
		case owner.Name == generate.ElsewhereOwner:
			known = a.foreignOwner
		}
		if known != nil {
			owner.Name, owner.UID = known.GetName(), string(known.GetUID())
		}
		owner.UID = cmp.Or(owner.UID, missing)
		resolved = append(resolved, owner.String())
	}
	return new(model.NamesOf(resolved...))
}

// uid is the uid that a name has now, as far as the watch or the client itself has seen it; empty if they have not.
func (a *actor) uid(name string) string {
	if uid := a.watchers[0].current(name).UID; uid != "" {
		return uid
	}
	if seen, known := a.seen[name]; known {
		return string(seen.GetUID())
	}
	return ""
}

// mergePatch is a change as a merge patch, for the object with a resourceVersion if that is not empty.
func (d *Driver) mergePatch(change model.Change, resourceVersion string) map[string]any {
	metadata := map[string]any{}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	if change.Label != nil {
		label := any(*change.Label)
		if *change.Label == "" {
			label = nil
		}
		metadata["labels"] = map[string]any{stateLabel: label}
	}
	if change.Value != nil {
		metadata["annotations"] = map[string]any{valueAnnotation: *change.Value}
	}
	if change.Finalizers != nil {
		metadata["finalizers"] = finalizersOf(*change.Finalizers)
	}
	if change.Owners != nil {
		metadata["ownerReferences"] = d.ownersOf(*change.Owners)
	}
	return map[string]any{"metadata": metadata}
}

// release removes the finalizer that an object was created with, which comes before those of the garbage collector.
func release() []any {
	first := "/metadata/finalizers/0"
	return []any{
		map[string]any{"op": "test", "path": first, "value": prefix + heldBy},
		map[string]any{"op": "remove", "path": first},
	}
}

// withoutVersion removes what makes an update conditional.
func withoutVersion(object *client.Object, uid bool) {
	object.SetResourceVersion("")
	if !uid {
		object.SetUID(types.UID(""))
	}
}

// all is the change that a PUT of an object makes: it writes every field.
func all(object *client.Object) model.Change {
	sent := snapshot(object)
	return model.Change{Label: &sent.Label, Value: &sent.Value, Finalizers: &sent.Finalizers, Owners: &sent.Owners}
}

// withoutManagedFields is a copy of an object as clients send it.
func withoutManagedFields(object *client.Object) *client.Object {
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object
}
