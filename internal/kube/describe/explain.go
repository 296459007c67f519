package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// states are the last observed states of objects. A deleted object is nil.
type states map[types.UID]*unstructured.Unstructured

func statesOf(events []journal.Event) states {
	last := states{}
	for _, event := range events {
		last[event.Object.GetUID()] = event.Object
		if event.Type == watch.Deleted {
			last[event.Object.GetUID()] = nil
		}
	}
	return last
}

// Explain describes why each object of the subjects' events still exists, given all events.
func Explain(all, subjects []journal.Event) []string {
	last := statesOf(all)
	seen := map[types.UID]bool{}
	var explanation []string
	for _, event := range subjects {
		uid := event.Object.GetUID()
		if object := last[uid]; object != nil && !seen[uid] {
			explanation = append(explanation, fmt.Sprintf("%s still exists: %s", client.Title(object), remainingReason(object, last)))
		}
		seen[uid] = true
	}
	return explanation
}

// remainingReason describes what keeps one object.
func remainingReason(object *unstructured.Unstructured, last states) string {
	if object.GetDeletionTimestamp() == nil {
		return "no deletionTimestamp" + ownersOf(object, last)
	}
	var reasons []string
	for _, finalizer := range object.GetFinalizers() {
		switch finalizer {
		case client.Hold:
			reasons = append(reasons, "held by this test's own finalizer ("+client.Hold+")")
		case metav1.FinalizerDeleteDependents:
			reasons = append(reasons, "finalizer foregroundDeletion waits for blocking dependents: "+blockersOf(object, last))
		case metav1.FinalizerOrphanDependents:
			reasons = append(reasons, "finalizer orphan waits for the garbage collector")
		default:
			reasons = append(reasons, "finalizer "+finalizer+" is pending")
		}
	}
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		reasons = append(reasons, fmt.Sprintf("the grace period of %ds ends at %s, and the kubelet has not confirmed termination",
			*grace, object.GetDeletionTimestamp().UTC().Format(time.RFC3339)))
	}
	if len(reasons) == 0 {
		return "terminating, with no finalizers and no grace period left"
	}
	return "terminating; " + strings.Join(reasons, "; ")
}

func blockersOf(owner *unstructured.Unstructured, last states) string {
	var names []string
	for _, object := range last {
		if object == nil {
			continue
		}
		for _, reference := range object.GetOwnerReferences() {
			if reference.UID == owner.GetUID() && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion {
				names = append(names, client.Title(object))
			}
		}
	}
	if len(names) == 0 {
		return "none observed"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// ownersOf describes the observed states of an object's owners.
func ownersOf(object *unstructured.Unstructured, last states) string {
	var owners strings.Builder
	for _, reference := range object.GetOwnerReferences() {
		owner, observed := last[reference.UID]
		state := "was deleted"
		switch {
		case !observed:
			state = "was not observed"
		case owner != nil && owner.GetDeletionTimestamp() != nil:
			state = "is terminating"
		case owner != nil:
			state = "still exists"
		}
		fmt.Fprintf(&owners, "; its owner %s %s", ownerReference(reference), state)
	}
	return owners.String()
}
