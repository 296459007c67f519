package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// version is one version of an object, or its end.
type version struct {
	number  uint64
	object  model.Object
	deleted bool
	// source is what has shown it first.
	source string
}

// log are all versions of each object, in their order.
type log map[string][]version

// number is a resourceVersion as a number, and 0 for one that is none.
func number(resourceVersion string) uint64 {
	number, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return number
}

// sighting is one place where a version shows.
type sighting struct {
	name string
	version
	request, stream int
	// at is when it was there, since the beginning of the round.
	at time.Duration
}

// sightings are all versions that the history shows, ends of objects included.
func (h *History) sightings() []sighting {
	var all []sighting
	see := func(name string, object model.Object, deleted bool, source string, request, stream int, at time.Duration) {
		if object.ResourceVersion != "" && slices.Contains(h.Names, name) {
			all = append(all, sighting{name, version{number(object.ResourceVersion), object, deleted, source}, request, stream, at})
		}
	}
	for i, request := range h.Requests {
		source := request.source()
		// The response to a delete of a pod may show a state that was never stored: what it read, marked as terminating, although another
		// delete was first.
		if request.showsVersion() && (!h.Graceful || request.Operation.Verb != model.Delete) {
			see(request.Name, *request.Outcome.Object, false, source, i, -1, request.Return)
		}
		if request.Listing != nil {
			for name, object := range request.Listing.Objects {
				see(name, object, false, source, i, -1, request.Return)
			}
		}
	}
	for i, stream := range h.Streams {
		for _, event := range stream.Events {
			if event.Type != Deleted || stream.Label == "" {
				see(event.Name, event.Object, event.Type == Deleted, "a "+event.Type+" event of "+stream.ID, -1, i, event.At)
			}
		}
	}
	return all
}

// showsVersion reports whether the response shows a version that is stored. One to a request that removed the object does not.
func (r Request) showsVersion() bool {
	object := r.Outcome.Object
	return object != nil && !r.Operation.DryRun && (!object.Terminating || object.Finalizers != "") &&
		(r.Operation.Verb != model.Delete || object.Terminating)
}

// logOf orders the sightings, and returns those that show another object than an earlier one with the same resourceVersion.
func logOf(sightings []sighting) (log, []Violation) {
	known, violations := log{}, []Violation{}
	first := map[string]version{}
	for _, seen := range sightings {
		key := seen.name + "/" + seen.object.ResourceVersion
		before, again := first[key]
		switch {
		case !again:
			first[key] = seen.version
			known[seen.name] = append(known[seen.name], seen.version)
		case before.deleted != seen.deleted || !seen.deleted && before.object != seen.object:
			violations = append(violations, Violation{
				Property: SameVersion, Rule: SameVersion.Rule, Name: seen.name, Request: seen.request, Stream: seen.stream,
				Message: fmt.Sprintf("resourceVersion %s of the object is %s in %s, and %s in %s", seen.object.ResourceVersion,
					before.object, before.source, seen.object, seen.source),
			})
		}
	}
	for _, versions := range known {
		slices.SortFunc(versions, func(a, b version) int { return cmp.Compare(a.number, b.number) })
	}
	return known, violations
}

// at is the state of an object at a resourceVersion.
func (l log) at(name string, number uint64) (object model.Object, exists bool) {
	for _, version := range l[name] {
		if version.number <= number {
			object, exists = version.object, !version.deleted
		}
	}
	return object, exists
}
