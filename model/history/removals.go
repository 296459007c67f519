package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Removals remember the objects that rounds have seen removed: a resourceVersion at which each no longer existed, by uid; empty where none is known.
type Removals map[string]string

// Enter adds to a history what earlier rounds have seen removed and this one shows, and remembers what this one has seen removed.
func (r Removals) Enter(h *History) {
	h.Removed = map[string]string{}
	for uid := range h.uids() {
		if version, known := r[uid]; known {
			h.Removed[uid] = version
		}
	}
	for uid, removed := range h.removals() {
		r[uid] = cmp.Or(removed.version, r[uid])
	}
}

// removal is what is known of the end of an object.
type removal struct {
	// at is since when it is known that it is gone; earlier than the round for one that an earlier round has seen removed.
	at time.Duration
	// version is a resourceVersion at which it no longer existed; empty if none is known.
	version string
	// source is what has shown it.
	source string
}

// precedes reports whether the object no longer existed at a resourceVersion.
func (r removal) precedes(version string) bool {
	return number(r.version) > 0 && number(version) >= number(r.version)
}

const earlier = time.Duration(-1)

// removals are the objects that are known to be removed, by uid: a watch has delivered DELETED, or a response shows it.
func (h *History) removals() map[string]removal {
	found := map[string]removal{}
	note := func(uid string, seen removal) {
		before, known := found[uid]
		if known && before.at <= seen.at {
			before, seen = seen, before
		}
		if before.version != "" && (seen.version == "" || number(before.version) < number(seen.version)) {
			seen.version = before.version
		}
		found[uid] = seen
	}
	for uid, version := range h.Removed {
		note(uid, removal{earlier, version, "an earlier round"})
	}
	for _, stream := range h.Streams {
		for _, event := range stream.ended() {
			note(event.Object.UID, removal{event.At, event.Object.ResourceVersion, "a DELETED event of " + stream.ID})
		}
	}
	sightings := h.sightings()
	for _, request := range h.Requests {
		for uid, version := range h.removedBy(request, sightings) {
			note(uid, removal{request.Return, version, request.source()})
		}
	}
	delete(found, "")
	return found
}

// ended are the ends of objects that the stream shows. Of the changes that it missed, the list at its beginning has shown the result.
func (s Stream) ended() []Event {
	var ended []Event
	if s.Label != "" {
		return nil
	}
	for _, event := range s.Missed {
		if event.Type == Deleted {
			event.Object.ResourceVersion = s.From
			ended = append(ended, event)
		}
	}
	return append(ended, slices.DeleteFunc(slices.Clone(s.Events), func(event Event) bool { return event.Type != Deleted })...)
}

// removedBy are the uids that a response shows to be gone, with a resourceVersion at which they are: that of the object which the request has
// removed, and where it reads the most recent state, those that were seen before and are not there.
func (h *History) removedBy(request Request, sightings []sighting) map[string]string {
	gone, operation, object := map[string]string{}, request.Operation, request.Outcome.Object
	isRead := operation.Verb == model.Get || operation.Verb == model.Select
	switch {
	case operation.DryRun || !request.isLinearizable():
	case !isRead && !h.Graceful && object != nil && !request.showsVersion():
		gone[object.UID] = ""
	case operation.Verb == model.Get && (object != nil || request.Outcome.Code == 404):
		for _, seen := range sightings {
			if seen.name == request.Name && seen.at < request.Call && (object == nil || object.UID != seen.object.UID) {
				gone[seen.object.UID] = ""
			}
		}
	case operation.Verb == model.Select && operation.Label == "" && len(h.Writers) == 0 && request.Listing != nil && len(request.Listing.Versions) > 0:
		for _, seen := range sightings {
			isOlder := number(request.Listing.Versions[0]) < seen.number // which another property refuses
			if seen.at < request.Call && !isOlder && request.Listing.Objects[seen.name].UID != seen.object.UID {
				gone[seen.object.UID] = request.Listing.Versions[0]
			}
		}
	}
	return gone
}

// uids are those of all objects that the history shows.
func (h *History) uids() map[string]bool {
	uids := map[string]bool{}
	for _, request := range h.Requests {
		for _, object := range request.shown() {
			uids[object.UID] = true
		}
	}
	for _, stream := range h.Streams {
		for _, event := range slices.Concat(stream.Missed, stream.Events) {
			uids[event.Object.UID] = true
		}
	}
	return uids
}

// source names the response.
func (r Request) source() string {
	switch {
	case r.Client == 0:
		return "the list after the round"
	case r.Operation.Verb == model.Select:
		return fmt.Sprintf("a list of client %d", r.Client)
	}
	return fmt.Sprintf("the response to %s of client %d", r.Operation.Verb, r.Client)
}

// shown are the objects that a response shows as existing, by name. The uid of a create that is a dry-run is not that of an object.
func (r Request) shown() map[string]model.Object {
	shown := map[string]model.Object{}
	if r.Listing != nil {
		maps.Copy(shown, r.Listing.Objects)
	}
	if r.Outcome.Object != nil && (!r.Operation.DryRun || r.Operation.Verb != model.Create) {
		shown[r.Name] = *r.Outcome.Object
	}
	return shown
}

// checkStaysGone checks that nothing shows an object again that was removed, unless it may be older than the removal. A read from a cache may, and so
// may another watch.
func (h *History) checkStaysGone() []Violation {
	removed := h.removals()
	var violations []Violation
	for i, request := range h.Requests {
		for name, object := range request.shown() {
			if known, ok := removed[object.UID]; ok && !object.Stray && request.mustKnow(known) {
				violation := StaysGone.broken(name, "%s shows an object that was removed, as %s has shown: %s", request.source(), known.source, object)
				violation.Request = i
				violations = append(violations, violation)
			}
		}
	}
	own := map[string]map[string]bool{}
	for i, stream := range h.Streams {
		if own[stream.ID] == nil {
			own[stream.ID] = map[string]bool{}
		}
		for _, event := range stream.again(removed, own[stream.ID]) {
			violation := StaysGone.broken(event.Name, "%s delivers %s of an object that was removed, as %s has shown: %s",
				stream.ID, event.Type, removed[event.Object.UID].source, event.Object)
			violation.Stream = i
			violations = append(violations, violation)
		}
	}
	return violations
}

// mustKnow reports whether a response may not be older than a removal. One without resourceVersion is the most recent state.
func (r Request) mustKnow(removed removal) bool {
	if r.Listing != nil && len(r.Listing.Versions) > 0 && removed.precedes(r.Listing.Versions[0]) {
		return true
	}
	return r.isLinearizable() && r.Call > removed.at || !r.isLinearizable() && removed.precedes(r.Version)
}

// again are the events that show a removed object as existing: after DELETED in the same watch, at a later resourceVersion, or in the state that
// initial events have built at a later one. Ended are the objects whose DELETED the watch has delivered; it is updated.
func (s Stream) again(removed map[string]removal, ended map[string]bool) []Event {
	var again []Event
	isBuilding, state := s.From == "", map[string]Event{}
	if !s.Resumed {
		clear(ended)
	}
	for _, event := range slices.Concat(s.Missed, s.Events) {
		uid := event.Object.UID
		known, ok := removed[uid]
		switch {
		case event.InitialEventsEnd:
			maps.DeleteFunc(state, func(uid string, _ Event) bool { return !removed[uid].precedes(event.Object.ResourceVersion) })
			again, isBuilding = slices.AppendSeq(again, maps.Values(state)), false
		case event.Type == Deleted:
			delete(state, uid)
			ended[uid] = s.Label == ""
		case !ok || event.Object.Stray:
		case isBuilding:
			state[uid] = event
		case ended[uid] || known.precedes(s.From) || known.precedes(event.Object.ResourceVersion):
			again = append(again, event)
		}
	}
	return again
}
