package removals

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Known are the objects that rounds have seen removed: a resourceVersion at which each no longer existed, by uid; empty where none is known.
type Known map[string]string

// Enter adds to a history what earlier rounds have seen removed and this one shows, and remembers what this one has seen removed.
func (k Known) Enter(h *history.History) {
	h.Removed = map[string]string{}
	for uid := range uids(h) {
		if version, known := k[uid]; known {
			h.Removed[uid] = version
		}
	}
	for uid, removed := range removals(h) {
		k[uid] = cmp.Or(removed.version, k[uid])
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
	return history.Number(r.version) > 0 && history.Number(version) >= history.Number(r.version)
}

const earlier = time.Duration(-1)

// removals are the objects that are known to be removed, by uid: a watch has delivered DELETED, or a response shows it.
func removals(h *history.History) map[string]removal {
	found := map[string]removal{}
	note := func(uid string, seen removal) {
		before, known := found[uid]
		if known && before.at <= seen.at {
			before, seen = seen, before
		}
		if before.version != "" && (seen.version == "" || history.Number(before.version) < history.Number(seen.version)) {
			seen.version = before.version
		}
		found[uid] = seen
	}
	for uid, version := range h.Removed {
		note(uid, removal{earlier, version, "an earlier round"})
	}
	for _, stream := range h.Streams {
		for _, event := range ended(stream) {
			note(event.Object.UID, removal{event.At, event.Object.ResourceVersion, "a DELETED event of " + stream.ID})
		}
	}
	sightings := h.Sightings()
	for _, request := range h.Requests {
		for uid, version := range removedBy(h, request, sightings) {
			note(uid, removal{request.Return, version, request.Source()})
		}
	}
	delete(found, "")
	return found
}

// ended are the ends of objects that the stream shows. Of the changes that it missed, the list at its beginning has shown the result.
func ended(s history.Stream) []history.Event {
	var ended []history.Event
	if s.Label != "" {
		return nil
	}
	for _, event := range s.Missed {
		if event.Type == history.Deleted {
			event.Object.ResourceVersion = s.From
			ended = append(ended, event)
		}
	}
	return append(ended, slices.DeleteFunc(slices.Clone(s.Events), func(event history.Event) bool { return event.Type != history.Deleted })...)
}

// removedBy are the uids that a response shows to be gone, with a resourceVersion at which they are: that of the object which the request has
// removed, and where it reads the most recent state, those that were seen before and are not there.
func removedBy(h *history.History, request history.Request, sightings []history.Sighting) map[string]string {
	gone, operation, object := map[string]string{}, request.Operation, request.Outcome.Object
	isRead := operation.Verb == model.Get || operation.Verb == model.Select
	switch {
	case operation.DryRun || !request.IsLinearizable():
	case !isRead && !h.Graceful && object != nil && !request.ShowsVersion():
		gone[object.UID] = ""
	case operation.Verb == model.Get && (object != nil || request.Outcome.Code == 404):
		for _, seen := range sightings {
			if seen.Name == request.Name && seen.At < request.Call && (object == nil || object.UID != seen.Object.UID) {
				gone[seen.Object.UID] = ""
			}
		}
	case operation.Verb == model.Select && operation.Label == "" && len(h.Writers) == 0 && request.Listing != nil && len(request.Listing.Versions) > 0:
		for _, seen := range sightings {
			isOlder := history.Number(request.Listing.Versions[0]) < seen.Number // which another property refuses
			if seen.At < request.Call && !isOlder && request.Listing.Objects[seen.Name].UID != seen.Object.UID {
				gone[seen.Object.UID] = request.Listing.Versions[0]
			}
		}
	}
	return gone
}

// uids are those of all objects that the history shows.
func uids(h *history.History) map[string]bool {
	uids := map[string]bool{}
	for _, request := range h.Requests {
		for _, object := range shown(request) {
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

// shown are the objects that a response shows as existing, by name. The uid of a create that is a dry-run is not that of an object.
func shown(r history.Request) map[string]model.Object {
	shown := map[string]model.Object{}
	if r.Listing != nil {
		maps.Copy(shown, r.Listing.Objects)
	}
	if r.Outcome.Object != nil && (!r.Operation.DryRun || r.Operation.Verb != model.Create) {
		shown[r.Name] = *r.Outcome.Object
	}
	return shown
}

// Check returns what shows an object again that was removed, unless it may be older than the removal. A read from a cache may, and so may another
// watch.
func Check(h *history.History) []history.Violation {
	removed := removals(h)
	var violations []history.Violation
	for i, request := range h.Requests {
		for name, object := range shown(request) {
			if known, ok := removed[object.UID]; ok && !object.Stray && mustKnow(request, known) {
				violation := StaysGone.Broken(name, "%s shows an object that was removed, as %s has shown: %s", request.Source(), known.source, object)
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
		for _, event := range again(stream, removed, own[stream.ID]) {
			violation := StaysGone.Broken(event.Name, "%s delivers %s of an object that was removed, as %s has shown: %s",
				stream.ID, event.Type, removed[event.Object.UID].source, event.Object)
			violation.Stream = i
			violations = append(violations, violation)
		}
	}
	return violations
}

// mustKnow reports whether a response may not be older than a removal. One without resourceVersion is the most recent state.
func mustKnow(r history.Request, removed removal) bool {
	if r.Listing != nil && len(r.Listing.Versions) > 0 && removed.precedes(r.Listing.Versions[0]) {
		return true
	}
	return r.IsLinearizable() && r.Call > removed.at || !r.IsLinearizable() && removed.precedes(r.Version)
}

// again are the events that show a removed object as existing: after DELETED in the same watch, at a later resourceVersion, or in the state that
// initial events have built at a later one. Ended are the objects whose DELETED the watch has delivered; it is updated.
func again(s history.Stream, removed map[string]removal, ended map[string]bool) []history.Event {
	var again []history.Event
	isBuilding, state := s.From == "", map[string]history.Event{}
	if !s.Resumed {
		clear(ended)
	}
	for _, event := range slices.Concat(s.Missed, s.Events) {
		uid := event.Object.UID
		known, ok := removed[uid]
		switch {
		case event.InitialEventsEnd:
			maps.DeleteFunc(state, func(uid string, _ history.Event) bool { return !removed[uid].precedes(event.Object.ResourceVersion) })
			again, isBuilding = slices.AppendSeq(again, maps.Values(state)), false
		case event.Type == history.Deleted:
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
