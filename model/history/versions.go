package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Version is one version of an object, or its end.
type Version struct {
	// Number is its resourceVersion, and Object what it was. Deleted reports that it is the end.
	Number  uint64
	Object  model.Object
	Deleted bool
	// source is what has shown it first.
	source string
}

// Log are all versions of each object, in their order.
type Log map[string][]Version

// Number is a resourceVersion as a number, and 0 for one that is none.
func Number(resourceVersion string) uint64 {
	number, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return number
}

// Sighting is one place where a version shows.
type Sighting struct {
	// Name is that of the object.
	Name string
	Version
	// Request or Stream is the index of what has shown it; the other one is -1.
	Request, Stream int
	// At is when it was there, since the beginning of the round.
	At time.Duration
}

// Sightings are all versions that the history shows, ends of objects included.
func (h *History) Sightings() []Sighting {
	var all []Sighting
	see := func(name string, object model.Object, deleted bool, source string, request, stream int, at time.Duration) {
		if object.ResourceVersion != "" && slices.Contains(h.Names, name) {
			all = append(all, Sighting{name, Version{Number(object.ResourceVersion), object, deleted, source}, request, stream, at})
		}
	}
	for i, request := range h.Requests {
		source := request.Source()
		// The response to a delete of a pod may show a state that was never stored: what it read, marked as terminating, although another
		// delete was first.
		if request.ShowsVersion() && (!h.Graceful || request.Operation.Verb != model.Delete) {
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

// ShowsVersion reports whether the response shows a version that is stored. One to a request that removed the object does not.
func (r Request) ShowsVersion() bool {
	object := r.Outcome.Object
	return object != nil && !r.Operation.DryRun && (!object.Terminating || object.Finalizers != "") &&
		(r.Operation.Verb != model.Delete || object.Terminating)
}

// LogOf orders the sightings, and returns those that show another object than an earlier one with the same resourceVersion.
func LogOf(sightings []Sighting) (Log, []Violation) {
	known, violations := Log{}, []Violation{}
	first := map[string]Version{}
	for _, seen := range sightings {
		key := seen.Name + "/" + seen.Object.ResourceVersion
		before, again := first[key]
		switch {
		case !again:
			first[key] = seen.Version
			known[seen.Name] = append(known[seen.Name], seen.Version)
		case before.Deleted != seen.Deleted || !seen.Deleted && before.Object != seen.Object:
			violations = append(violations, Violation{
				Property: SameVersion, Rule: SameVersion.Rule, Name: seen.Name, Request: seen.Request, Stream: seen.Stream,
				Message: fmt.Sprintf("resourceVersion %s of the object is %s in %s, and %s in %s", seen.Object.ResourceVersion,
					before.Object, before.source, seen.Object, seen.source),
			})
		}
	}
	for _, versions := range known {
		slices.SortFunc(versions, func(a, b Version) int { return cmp.Compare(a.Number, b.Number) })
	}
	return known, violations
}

// At is the state of an object at a resourceVersion.
func (l Log) At(name string, number uint64) (object model.Object, exists bool) {
	for _, version := range l[name] {
		if version.Number <= number {
			object, exists = version.Object, !version.Deleted
		}
	}
	return object, exists
}

// ShownAt is when something has first shown a version; Never if nothing has.
func ShownAt(seen []Sighting, name string, version Version) time.Duration {
	first := Never
	for _, sighting := range seen {
		if sighting.Name == name && sighting.Number == version.Number {
			first = min(first, sighting.At)
		}
	}
	return first
}

// IsStray reports whether an object is one of those that watches and lists of the run do not select.
func (h *History) IsStray(name string) bool {
	return slices.ContainsFunc(h.Sightings(), func(seen Sighting) bool { return seen.Name == name && seen.Object.Stray })
}

// Comparable reports whether all resourceVersions are numbers, which have an order.
func (h *History) Comparable() bool {
	isOrdered := func(resourceVersion string) bool {
		_, err := strconv.ParseUint(resourceVersion, 10, 64)
		return err == nil
	}
	return !slices.ContainsFunc(h.Sightings(), func(seen Sighting) bool { return !isOrdered(seen.Object.ResourceVersion) }) &&
		!slices.ContainsFunc(h.Workloads, func(event Event) bool { return !isOrdered(event.Object.ResourceVersion) })
}
