package reads

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// expected is an event that a stream must deliver.
type expected struct {
	number uint64
	kind   string
	name   string
	object model.Object
}

// expectedOf are the events after one resourceVersion and up to another that a selector lets through.
func expectedOf(known history.Log, label string, from, to uint64) []expected {
	var events []expected
	for name, versions := range known {
		before := history.Version{Deleted: true}
		for _, next := range versions {
			was := !before.Deleted && matches(label, before.Object)
			now := !next.Deleted && matches(label, next.Object)
			event := expected{next.Number, history.Modified, name, next.Object}
			switch {
			case !was:
				event.kind = history.Added
			case !now:
				event.kind, event.object = history.Deleted, before.Object
			}
			if (now || was) && next.Number > from && next.Number <= to {
				events = append(events, event)
			}
			before = next
		}
	}
	slices.SortFunc(events, func(a, b expected) int { return cmp.Compare(a.number, b.number) })
	return events
}

func matches(label string, object model.Object) bool { return label == "" || label == object.Label }

// Check returns what lists and watches show against their promises. Known are all versions of each object.
func Check(h *history.History, known history.Log) []history.Violation {
	violations := checkLists(h, known)
	for i := range h.Streams {
		violations = append(violations, checkStream(h, known, i)...)
	}
	return append(violations, checkEnds(h, known)...)
}

// checkStream checks one stream against the log.
func checkStream(h *history.History, known history.Log, index int) []history.Violation {
	stream := h.Streams[index]
	check := streamCheck{History: h, stream: stream, index: index, from: history.Number(stream.From)}
	events := stream.Events
	if stream.From == "" {
		var ended bool
		if events, ended = check.initial(known); !ended {
			if stream.Stalled {
				check.violated(WatchInitial, "", "the initial events did not end: no bookmark with the annotation %s was delivered in time",
					metav1.InitialEventsAnnotationKey)
			}
			return check.violations
		}
	}
	if stream.Stalled {
		check.violated(WatchComplete, "", "the change with resourceVersion %s was not delivered in time", stream.To)
	}
	check.order(events)
	check.content(known, events)
	return check.violations
}

// streamCheck is the check of one stream.
type streamCheck struct {
	*history.History
	stream     history.Stream
	index      int
	from       uint64
	violations []history.Violation
}

func (c *streamCheck) violated(property *history.Property, name, format string, values ...any) {
	violation := property.Broken(name, c.stream.ID+": "+format, values...)
	violation.Stream = c.index
	c.violations = append(c.violations, violation)
}

// initial checks the events up to the bookmark that ends the initial events, and returns those after it. It is false if there is no such
// bookmark: the stream ended before that, or it stalled.
func (c *streamCheck) initial(known history.Log) (rest []history.Event, ended bool) {
	state := map[string]model.Object{}
	for i, event := range c.stream.Events {
		switch {
		case event.InitialEventsEnd:
			c.from = history.Number(event.Object.ResourceVersion)
			c.sameState(known, state)
			return c.stream.Events[i+1:], true
		case event.Type == history.Deleted:
			delete(state, event.Name)
		default:
			state[event.Name] = event.Object
		}
	}
	return nil, false
}

func (c *streamCheck) sameState(known history.Log, state map[string]model.Object) {
	for _, name := range c.Names {
		expected, exists := known.At(name, c.from)
		exists = exists && matches(c.stream.Label, expected)
		if shown, ok := state[name]; ok != exists || ok && shown != expected {
			c.violated(WatchInitial, name, "at the bookmark %d after the initial events the object is %s, not %s", c.from,
				describe(shown, ok), describe(expected, exists))
		}
	}
}

func describe(object model.Object, exists bool) string {
	return model.State{Exists: exists, Object: object}.String()
}

// order checks that resourceVersions increase, and that nothing comes before the stream's beginning.
func (c *streamCheck) order(events []history.Event) {
	last, seen := c.from, map[string]bool{}
	for _, event := range events {
		at := history.Number(event.Object.ResourceVersion)
		key := event.Name + "/" + event.Object.ResourceVersion
		isBookmark := event.Type == history.Bookmark
		switch {
		case isBookmark && at < last:
			c.violated(WatchBookmarks, "", "a bookmark with resourceVersion %d comes after an event with %d", at, last)
		case !isBookmark && seen[key]:
			c.violated(WatchOnce, event.Name, "%s with resourceVersion %d is delivered twice", event.Type, at)
		case !isBookmark && at <= c.from && c.stream.Resumed:
			c.violated(WatchResumed, event.Name, "%s with resourceVersion %d is delivered again after resuming from %d", event.Type, at, c.from)
		case !isBookmark && at <= last:
			c.violated(WatchOrder, event.Name, "%s with resourceVersion %d comes after %d", event.Type, at, last)
		}
		seen[key] = true
		last = max(last, at)
	}
}

// content checks that exactly the expected events were delivered.
func (c *streamCheck) content(known history.Log, events []history.Event) {
	to := history.Number(c.stream.To)
	if to == 0 && len(events) > 0 {
		to = history.Number(events[len(events)-1].Object.ResourceVersion)
	}
	delivered, first := map[string]history.Event{}, uint64(0)
	for _, event := range events {
		if !slices.Contains(c.Names, event.Name) {
			continue
		}
		at := history.Number(event.Object.ResourceVersion)
		delivered[fmt.Sprint(event.Name, "/", at)] = event
		if first == 0 {
			first = at
		}
	}
	property := WatchComplete
	if c.stream.Label != "" {
		property = WatchSelector
	}
	for _, expected := range expectedOf(known, c.stream.Label, c.from, to) {
		key := fmt.Sprint(expected.name, "/", expected.number)
		event, ok := delivered[key]
		delete(delivered, key)
		switch {
		case !ok && c.stream.Resumed && expected.number < first:
			c.violated(WatchResumed, expected.name, "%s with resourceVersion %d is missing after resuming from %d", expected.kind, expected.number, c.from)
		case !ok && c.stream.Label != "" && expected.kind != history.Modified:
			c.violated(WatchSelector, expected.name, "%s with resourceVersion %d is missing (%s)", expected.kind, expected.number, expected.object)
		case !ok:
			c.violated(WatchComplete, expected.name, "%s with resourceVersion %d is missing (%s)", expected.kind, expected.number, expected.object)
		case event.Type != expected.kind:
			c.violated(property, expected.name, "the event with resourceVersion %d is %s, not %s", expected.number, event.Type, expected.kind)
		case event.Type == history.Deleted && !sameState(event.Object, expected.object):
			c.violated(WatchDeleted, expected.name, "DELETED with resourceVersion %d shows %s; the last state was %s", expected.number, event.Object, expected.object)
		}
	}
	for _, event := range delivered {
		if at := history.Number(event.Object.ResourceVersion); at > c.from && at <= to {
			c.violated(property, event.Name, "%s with resourceVersion %d (%s) must not be delivered", event.Type, at, event.Object)
		}
	}
}

// sameState compares the object of a DELETED event with the last state, whose resourceVersion it does not have.
func sameState(shown, last model.Object) bool {
	return shown.UID == last.UID && shown.Content() == last.Content()
}

// CheckSameOrder compares the streams of all objects with each other, so that it needs no order of resourceVersions.
func CheckSameOrder(h *history.History) []history.Violation {
	position, owner := map[string]int{}, ""
	for i, stream := range h.Streams {
		if stream.Label != "" || stream.From == "" {
			continue
		}
		last, lastKey := -1, ""
		for _, event := range stream.Events {
			key := fmt.Sprint(event.Type, " of ", event.Name, " with resourceVersion ", event.Object.ResourceVersion)
			if owner == "" || owner == stream.ID {
				position[key] = len(position)
				continue
			}
			known, ok := position[key]
			if !ok {
				continue
			}
			if known < last {
				return []history.Violation{{
					Property: WatchSameOrder, Rule: WatchSameOrder.Rule, Name: event.Name, Request: -1, Stream: i,
					Message: fmt.Sprintf("%s delivers %s before %s, and %s after it", stream.ID, lastKey, key, owner),
				}}
			}
			last, lastKey = known, key
		}
		if owner == "" {
			owner = stream.ID
		}
	}
	return nil
}

// checkEnds checks that a watch has shown the end of each object that is gone at the end of the round.
func checkEnds(h *history.History, known history.Log) []history.Violation {
	complete := slices.ContainsFunc(h.Streams, func(stream history.Stream) bool { return stream.Label == "" && stream.To != "" })
	var violations []history.Violation
	for _, name := range h.Names {
		versions := known[name]
		if len(versions) == 0 || versions[len(versions)-1].Deleted || !complete || !isGone(h, name, versions[len(versions)-1]) {
			continue
		}
		violations = append(violations, WatchComplete.Broken(name,
			"no watch has delivered DELETED of the object, which is gone; its last state was %s", versions[len(versions)-1].Object))
	}
	return violations
}

// isGone reports whether the last response about an object shows that it is gone, and that its last version is. Another client may have created it
// after that.
func isGone(h *history.History, name string, last history.Version) bool {
	for _, request := range slices.Backward(h.Requests) {
		if request.Name == name && request.IsLinearizable() {
			return request.Outcome.Code == 404 && (len(h.Writers) == 0 || history.ShownAt(h.Sightings(), name, last) < request.Call)
		}
	}
	return false
}
