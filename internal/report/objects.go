package report

import (
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Object is the part of a timeline about one object: its events, requests and reviews, each in the order of the runner's clock. It has the
// name of the last event.
type Object struct {
	v1alpha1.ObjectReference
	// Events contains at least one.
	Events   []v1alpha1.Observation
	Requests []v1alpha1.Request
	Reviews  []v1alpha1.Review
}

// ObjectsOf sorts a timeline by object, in the order of their first events. The rest are requests and reviews of other subjects:
// collections, objects that were not watched, and none.
func ObjectsOf(timeline v1alpha1.Timeline) (objects []*Object, rest v1alpha1.Timeline) {
	for _, event := range slices.SortedStableFunc(slices.Values(timeline.Events), byTime(observedAt)) {
		i := slices.IndexFunc(objects, func(o *Object) bool { return o.UID == event.UID })
		if i < 0 {
			i = len(objects)
			objects = append(objects, &Object{})
		}
		objects[i].ObjectReference = event.ObjectReference
		objects[i].Events = append(objects[i].Events, event)
	}
	for _, request := range slices.SortedStableFunc(slices.Values(timeline.Requests), byTime(sentAt)) {
		if o := concerned(objects, request.Object, request.At); o != nil {
			o.Requests = append(o.Requests, request)
		} else {
			rest.Requests = append(rest.Requests, request)
		}
	}
	for _, review := range slices.SortedStableFunc(slices.Values(timeline.Reviews), byTime(reviewedAt)) {
		if o := concerned(objects, &review.Object, review.At); o != nil {
			o.Reviews = append(o.Reviews, review)
		} else {
			rest.Reviews = append(rest.Reviews, review)
		}
	}
	return objects, rest
}

func observedAt(event v1alpha1.Observation) time.Time { return event.At }

func sentAt(request v1alpha1.Request) time.Time { return request.At }

func reviewedAt(review v1alpha1.Review) time.Time { return review.At }

func byTime[T any](at func(T) time.Time) func(a, b T) int {
	return func(a, b T) int { return at(a).Compare(at(b)) }
}

// concerned returns the object of an entry at some time, or nil. Without a uid it is the last object with that name before it, or else the
// first.
func concerned(objects []*Object, about *v1alpha1.ObjectReference, at time.Time) *Object {
	if about == nil || about.Name == "" {
		return nil
	}
	var match *Object
	for _, o := range objects {
		if about.UID != "" && about.UID == o.UID {
			return o
		}
		named := about.Group == o.Group && about.Kind == o.Kind && about.Namespace == o.Namespace && about.Name == o.Name
		if about.UID == "" && named && (match == nil || !o.FirstSeen().After(at)) {
			match = o
		}
	}
	return match
}

// FirstSeen is when the object was first seen.
func (o *Object) FirstSeen() time.Time { return o.Events[0].At }

// Last is the last observation of the object.
func (o *Object) Last() v1alpha1.Observation { return o.Events[len(o.Events)-1] }

// First returns when a condition was first true; false when it never was.
func (o *Object) First(is func(v1alpha1.Observation) bool) (time.Time, bool) {
	i := slices.IndexFunc(o.Events, is)
	if i < 0 {
		return time.Time{}, false
	}
	return o.Events[i].At, true
}

// DeletedAt returns when the deletion was observed; false when it was not.
func (o *Object) DeletedAt() (time.Time, bool) { return o.First(Deleted) }

// Ever reports whether a condition was ever true.
func (o *Object) Ever(is func(v1alpha1.Observation) bool) bool {
	return slices.ContainsFunc(o.Events, is)
}

// Deleted reports whether an event is the last one of an object.
func Deleted(event v1alpha1.Observation) bool { return event.Type == "DELETED" }
