package claim

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// deleted is the type of the last event of an object.
const deleted = "DELETED"

// collectors are the finalizers of deletion policies. A delete adds and removes them itself, also on an object that is being deleted.
var collectors = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

// checkHistories evaluates again what Kubernetes promises of every object, on the history of each object in a behavior that passed. It does
// not repeat the assertions of the behavior.
func (v *verification) checkHistories(result v1alpha1.Result) {
	last, added := map[string]v1alpha1.Observation{}, map[string]time.Time{}
	for _, event := range result.Timeline.Events {
		uid := string(event.UID)
		if uid == "" {
			continue // a component of the cluster
		}
		before, seen := last[uid]
		last[uid] = event
		for _, finalizer := range without(event.Finalizers, before.Finalizers) {
			added[uid+" "+finalizer] = event.At
		}
		if !seen {
			continue
		}
		// A delete that the server has begun does not notice a finalizer that is added meanwhile (Store.Delete in
		// k8s.io/apiserver/pkg/registry/generic/registry).
		holding := slices.DeleteFunc(without(before.Finalizers, collectors), func(finalizer string) bool {
			return event.At.Sub(added[uid+" "+finalizer]) <= slack
		})
		if broken := brokenBy(before, event, holding); broken != "" {
			v.found(result.ID, "it passed, and the history of %s shows %s", named(before.ObjectReference), broken)
			return
		}
	}
}

// brokenBy returns what two successive events of one uid show that is not possible: the identity of objects and the order of their events,
// finalizers that hold an object, a deletion that is final, and a grace period that only becomes shorter. It is empty if there is nothing.
func brokenBy(before, event v1alpha1.Observation, holding []string) string {
	terminating := before.DeletionTimestamp != nil
	switch {
	case before.Type == deleted:
		return event.Type + " after " + deleted
	case event.Type == "ADDED":
		return "ADDED after " + before.Type
	case before.Name != event.Name || before.Namespace != event.Namespace || before.Kind != event.Kind:
		return "another object with the same uid, " + named(event.ObjectReference)
	case terminating && event.DeletionTimestamp == nil:
		return "no deletionTimestamp after it was set"
	case terminating && before.GraceSeconds != nil && event.GraceSeconds != nil && *event.GraceSeconds > *before.GraceSeconds:
		return fmt.Sprintf("a grace period that grew from %d to %d", *before.GraceSeconds, *event.GraceSeconds)
	case terminating && len(without(event.Finalizers, slices.Concat(before.Finalizers, collectors))) > 0:
		return "a finalizer that was added during the deletion: " + without(event.Finalizers, slices.Concat(before.Finalizers, collectors))[0]
	case event.Type == deleted && !terminating && len(holding) > 0:
		return "that it was deleted without a deletionTimestamp while it had the finalizer " + holding[0]
	}
	return ""
}

// without returns the finalizers that are not in a list.
func without(finalizers, list []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool { return slices.Contains(list, finalizer) })
}
