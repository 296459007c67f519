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

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// Explain says of every object whose last event is not its end why it is still there.
func Explain(events []journal.Event) []string {
	last := map[types.UID]*unstructured.Unstructured{}
	var order []types.UID
	for _, event := range events {
		uid := event.Object.GetUID()
		if _, seen := last[uid]; !seen {
			order = append(order, uid)
		}
		last[uid] = event.Object
		if event.Type == watch.Deleted {
			last[uid] = nil
		}
	}
	var explanation []string
	for _, uid := range order {
		if object := last[uid]; object != nil {
			explanation = append(explanation, fmt.Sprintf("%s is still there: %s", client.Title(object), whyStill(object, last)))
		}
	}
	return explanation
}

// whyStill says what keeps one object, given the last state of all.
func whyStill(object *unstructured.Unstructured, living map[types.UID]*unstructured.Unstructured) string {
	if object.GetDeletionTimestamp() == nil {
		return "nobody has asked for its deletion" + ownersOf(object, living)
	}
	var reasons []string
	for _, finalizer := range object.GetFinalizers() {
		switch finalizer {
		case client.Hold:
			reasons = append(reasons, "held by this test's own finalizer ("+client.Hold+")")
		case metav1.FinalizerDeleteDependents:
			reasons = append(reasons, "it waits for its blocking dependents: "+blockersOf(object, living))
		case metav1.FinalizerOrphanDependents:
			reasons = append(reasons, "it waits for the collector to orphan its dependents")
		default:
			reasons = append(reasons, "finalizer "+finalizer+" is pending")
		}
	}
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		reasons = append(reasons, fmt.Sprintf("its grace of %ds ends at %s and its node has not confirmed its end",
			*grace, object.GetDeletionTimestamp().UTC().Format(time.RFC3339)))
	}
	if len(reasons) == 0 {
		return "terminating, and nothing visible keeps it"
	}
	return "terminating; " + strings.Join(reasons, "; ")
}

func blockersOf(owner *unstructured.Unstructured, living map[types.UID]*unstructured.Unstructured) string {
	var names []string
	for _, object := range living {
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
		return "none is left"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func ownersOf(object *unstructured.Unstructured, living map[types.UID]*unstructured.Unstructured) string {
	var owners []string
	for _, reference := range object.GetOwnerReferences() {
		state := "is gone"
		if living[reference.UID] != nil {
			state = "is still there"
		}
		owners = append(owners, fmt.Sprintf("its owner %s %s", ownerReference(reference), state))
	}
	if len(owners) == 0 {
		return ""
	}
	return "; " + strings.Join(owners, "; ")
}
