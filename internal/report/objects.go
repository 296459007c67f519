package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// object is what a timeline says of one object: its events, in the order in which they were seen.
type object struct {
	uid    types.UID
	events []v1alpha1.Observation
}

// objectsOf sorts the events of a timeline by object; the object that was seen first comes first.
func objectsOf(timeline v1alpha1.Timeline) []*object {
	var objects []*object
	byUID := map[types.UID]*object{}
	events := slices.Clone(timeline.Events)
	slices.SortStableFunc(events, func(a, b v1alpha1.Observation) int { return a.At.Compare(b.At) })
	for _, event := range events {
		o := byUID[event.UID]
		if o == nil {
			o = &object{uid: event.UID}
			byUID[event.UID] = o
			objects = append(objects, o)
		}
		o.events = append(o.events, event)
	}
	return objects
}

// first is the first event of which something is true, and when it was seen.
func (o *object) first(is func(v1alpha1.Observation) bool) (time.Time, bool) {
	i := slices.IndexFunc(o.events, is)
	if i < 0 {
		return time.Time{}, false
	}
	return o.events[i].At, true
}

// born is when the object was first seen.
func (o *object) born() time.Time { return o.events[0].At }

// gone is when its end was seen.
func (o *object) gone() (time.Time, bool) { return o.first(ended) }

// last is what was last seen of it.
func (o *object) last() v1alpha1.Observation { return o.events[len(o.events)-1] }

// ever is true when it was once seen so.
func (o *object) ever(is func(v1alpha1.Observation) bool) bool {
	return slices.ContainsFunc(o.events, is)
}

func ended(event v1alpha1.Observation) bool { return event.Type == "DELETED" }

func terminating(event v1alpha1.Observation) bool { return event.DeletionTimestamp != nil }

// carrying is true of a terminating object that has a finalizer.
func carrying(finalizer string) func(v1alpha1.Observation) bool {
	return func(event v1alpha1.Observation) bool {
		return terminating(event) && !ended(event) && slices.Contains(event.Finalizers, finalizer)
	}
}

// delayed is true of an object whose end also waits for others than the garbage collector: a node's grace period, or
// a finalizer that is not the collector's, first of all the one with which the harness itself holds objects.
func delayed(event v1alpha1.Observation) bool {
	if !terminating(event) || ended(event) {
		return false
	}
	return event.GraceSeconds != nil && *event.GraceSeconds > 0 || slices.ContainsFunc(event.Finalizers, foreign)
}

// waiting is true of a terminating object that some finalizer keeps.
func waiting(event v1alpha1.Observation) bool {
	return terminating(event) && !ended(event) && len(event.Finalizers) > 0
}

func foreign(finalizer string) bool {
	return finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents
}

// owns is true of observations that name the object as an owner.
func (o *object) owns(event v1alpha1.Observation) bool {
	return slices.ContainsFunc(event.Owners, func(owner metav1.OwnerReference) bool { return owner.UID == o.uid })
}
