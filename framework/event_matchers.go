package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/matchers"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// EventMatcher is something that a history may show: the first event that fits. Once observed it stays observed.
type EventMatcher struct {
	name string
	// kinds are the kinds of the objects that it is about.
	kinds []string
	// occurs finds where it begins and ends among the events; it is false when it has not happened.
	occurs func(events []journal.Event) (begin, end int, happened bool)
}

// Added is when an object was created.
func Added(object *Object) EventMatcher {
	return first("created", object, func(event journal.Event) bool { return event.Type == watch.Added })
}

// Terminating is when an object first carried a deletionTimestamp.
func Terminating(object *Object) EventMatcher {
	return first("terminating", object, func(event journal.Event) bool {
		return event.Type != watch.Deleted && event.Object.GetDeletionTimestamp() != nil
	})
}

// Deleted is when an object was gone.
func Deleted(object *Object) EventMatcher {
	return first("deleted", object, func(event journal.Event) bool { return event.Type == watch.Deleted })
}

// Matching is when an object first matched, while it existed.
func Matching(object *Object, matcher types.GomegaMatcher) EventMatcher {
	return first("observed to "+nameOf(matcher), object, func(event journal.Event) bool {
		matches, err := matcher.Match(event.Object)
		return event.Type != watch.Deleted && err == nil && matches
	})
}

// Each is when the same has happened to all of some objects, in whatever order.
func Each(event func(*Object) EventMatcher, objects ...*Object) EventMatcher {
	each := make([]EventMatcher, len(objects))
	names := make([]string, len(objects))
	var kinds []string
	for i, object := range objects {
		each[i] = event(object)
		names[i] = each[i].name
		kinds = append(kinds, each[i].kinds...)
	}
	return EventMatcher{
		name: "in any order: " + strings.Join(names, ", "), kinds: kinds,
		occurs: func(events []journal.Event) (int, int, bool) {
			begin, end, all := len(events), -1, true
			for _, one := range each {
				first, last, happened := one.occurs(events)
				if happened {
					begin, end = min(begin, first), max(end, last)
				}
				all = all && happened
			}
			return begin, end, all
		},
	}
}

// first is the first event of an object that fits.
func first(what string, object *Object, fits func(journal.Event) bool) EventMatcher {
	return EventMatcher{
		name: client.Title(object) + " " + what, kinds: []string{object.GetKind()},
		occurs: func(events []journal.Event) (int, int, bool) {
			at := slices.IndexFunc(events, func(event journal.Event) bool {
				return event.Object.GetUID() == object.GetUID() && fits(event)
			})
			return at, at, at >= 0
		},
	}
}

// HaveObserved matches a History in which all of these have happened, each after the one before it. Under Eventually
// it gives up as soon as the order is broken, because what happened first stays first. Objects of several kinds are an
// error: each kind is watched by itself, so what came first is not certain.
func HaveObserved(events ...EventMatcher) types.GomegaMatcher { return &haveObserved{expected: events} }

// HaveObservedOnly matches a History in which these have happened, each after the one before it, and nothing else but what others
// wrote.
func HaveObservedOnly(events ...EventMatcher) types.GomegaMatcher {
	return &haveObserved{expected: events, only: true}
}

type haveObserved struct {
	expected []EventMatcher
	// only says that nothing else may have happened.
	only bool
	// broken is the pair that stands in the wrong order, if any.
	broken string
}

func (h *haveObserved) Match(actual any) (bool, error) {
	history, ok := actual.(*History)
	if !ok {
		return false, fmt.Errorf("HaveObserved matches a *History, not %T", actual)
	}
	if err := h.oneKind(); err != nil {
		return false, err
	}
	events, told, err := h.eventsOf(history)
	if err != nil {
		return false, err
	}
	h.broken = ""
	if h.only && len(events) > len(h.expected) {
		h.broken = fmt.Sprintf("More happened than expected: %d events, not %d", len(events), len(h.expected))
		return false, nil
	}
	complete, last := true, -1
	for i, event := range h.expected {
		begin, end, happened := event.occurs(events)
		if end >= 0 && (!complete || begin <= last) && i > 0 {
			h.broken = fmt.Sprintf("%s did not come after %s", event.name, h.expected[i-1].name)
			return false, nil
		}
		complete = complete && happened
		last = max(last, end)
	}
	return complete && told, nil
}

// eventsOf are the events that are looked at, and whether that is all that has happened so far.
func (h *haveObserved) eventsOf(history *History) (events []journal.Event, complete bool, err error) {
	if h.only {
		return history.own()
	}
	events, err = history.Events()
	return events, true, err
}

// oneKind refuses to order what happens to objects of different kinds.
func (h *haveObserved) oneKind() error {
	var kinds []string
	for _, event := range h.expected {
		kinds = append(kinds, event.kinds...)
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(h.expected) > 1 && len(kinds) > 1 {
		return fmt.Errorf("the order of what happens to a %s is not certain: observe each kind by itself", strings.Join(kinds, " and to a "))
	}
	return nil
}

// MatchMayChangeInTheFuture tells Eventually that a broken order stays broken.
func (h *haveObserved) MatchMayChangeInTheFuture(any) bool { return h.broken == "" }

func (h *haveObserved) FailureMessage(actual any) string {
	message := fmt.Sprintf("Expected, in this order:\n%s\nHappened:\n%v", h.list(), actual)
	if h.broken != "" {
		message = h.broken + ".\n" + message
	}
	return message + "\n" + explained(actual)
}

func (h *haveObserved) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("Expected not to happen, in this order:\n%s\nHappened:\n%v", h.list(), actual)
}

func (h *haveObserved) list() string {
	var lines []string
	for _, event := range h.expected {
		lines = append(lines, "  "+event.name)
	}
	return strings.Join(lines, "\n")
}

// explained says why the objects of a history are still there.
func explained(actual any) string {
	history, ok := actual.(*History)
	if !ok {
		return ""
	}
	events, err := history.Events()
	if err != nil {
		return ""
	}
	return strings.Join(describe.Explain(events), "\n")
}

// nameOf is a matcher as part of a sentence.
func nameOf(matcher types.GomegaMatcher) string {
	switch matcher := matcher.(type) {
	case fmt.Stringer:
		return matcher.String()
	case *matchers.NotMatcher:
		return "not " + nameOf(matcher.Matcher)
	case *matchers.AndMatcher:
		names := make([]string, len(matcher.Matchers))
		for i, one := range matcher.Matchers {
			names[i] = nameOf(one)
		}
		return strings.Join(names, " and ")
	}
	return format.Object(matcher, 0)
}
