package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// EventMatcher is something that a history may show: the first event that fits. Once observed it stays observed.
type EventMatcher struct {
	// subject and verb make a sentence: `ConfigMap "owner"`, "deleted".
	subject, verb string
	// each are the events of which all must happen, in any order; nil for a single one.
	each []EventMatcher
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
	return first("observed to "+describe.Matcher(matcher), object, func(event journal.Event) bool {
		matches, err := matcher.Match(event.Object)
		return event.Type != watch.Deleted && err == nil && matches
	})
}

// Each is when the same has happened to all of some objects, in whatever order.
func Each(event func(*Object) EventMatcher, objects ...*Object) EventMatcher {
	each := make([]EventMatcher, len(objects))
	var kinds []string
	for i, object := range objects {
		each[i] = event(object)
		kinds = append(kinds, each[i].kinds...)
	}
	return EventMatcher{
		each: each, kinds: kinds,
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
		subject: client.Title(object), verb: what, kinds: []string{object.GetKind()},
		occurs: func(events []journal.Event) (int, int, bool) {
			at := slices.IndexFunc(events, func(event journal.Event) bool {
				return event.Object.GetUID() == object.GetUID() && fits(event)
			})
			return at, at, at >= 0
		},
	}
}

// fewNames is how many events of Each a message names.
const fewNames = 5

// name is the event without a verb's tense, for lists: `ConfigMap "owner" deleted`.
func (e EventMatcher) name() string {
	if e.each == nil {
		return e.subject + " " + e.verb
	}
	var names []string
	for _, one := range e.each[:min(len(e.each), fewNames)] {
		names = append(names, one.name())
	}
	if more := len(e.each) - fewNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "in any order: " + strings.Join(names, ", ")
}

// missing are the sentences on what has not happened among the events: `ConfigMap "owner" was not deleted`.
func (e EventMatcher) missing(events []journal.Event) []string {
	if e.each == nil {
		if _, _, happened := e.occurs(events); happened {
			return nil
		}
		return []string{e.subject + " was not " + e.verb}
	}
	var missing []string
	for _, one := range e.each {
		missing = append(missing, one.missing(events)...)
	}
	if more := len(missing) - fewNames; more > 0 {
		missing = append(missing[:fewNames], fmt.Sprintf("and %d more", more))
	}
	return missing
}

// clause is the event as a clause: `ConfigMap "owner" was deleted`.
func (e EventMatcher) clause() string {
	if e.each == nil {
		return e.subject + " was " + e.verb
	}
	var clauses []string
	for _, one := range e.each[:min(len(e.each), fewNames)] {
		clauses = append(clauses, one.clause())
	}
	if more := len(e.each) - fewNames; more > 0 {
		clauses = append(clauses, fmt.Sprintf("%d more", more))
	}
	return strings.Join(clauses, " and ")
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
		h.broken = fmt.Sprintf("Expected %d event(s), observed %d", len(h.expected), len(events))
		return false, nil
	}
	complete, last := true, -1
	for i, event := range h.expected {
		begin, end, happened := event.occurs(events)
		if end >= 0 && (!complete || begin <= last) && i > 0 {
			h.broken = tooEarly(event, h.expected[i-1], events)
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

// tooEarly says that an event did not come after the one that is expected before it.
func tooEarly(event, before EventMatcher, events []journal.Event) string {
	if len(before.missing(events)) > 0 {
		return fmt.Sprintf("%s, but before that %s", event.clause(), strings.Join(before.missing(events), ", "))
	}
	return fmt.Sprintf("%s, but not after %s", event.clause(), before.clause())
}

func (h *haveObserved) FailureMessage(actual any) string {
	message := fmt.Sprintf("Expected events%s:\n%s\nObserved events:\n%v", h.ordered(), h.list(), actual)
	if summary := h.summary(actual); summary != "" {
		message = summary + ".\n" + message
	}
	return strings.TrimSuffix(message+"\n"+explained(actual), "\n")
}

func (h *haveObserved) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("These events must not occur%s:\n%s\nObserved events:\n%v", h.ordered(), h.list(), actual)
}

// summary says what is wrong: the order, or what has not happened.
func (h *haveObserved) summary(actual any) string {
	history, is := actual.(*History)
	if h.broken != "" || !is {
		return h.broken
	}
	events, err := history.Events()
	if err != nil {
		return ""
	}
	for _, event := range h.expected { // what comes later cannot have happened either
		if missing := event.missing(events); len(missing) > 0 {
			return strings.Join(missing, ", ")
		}
	}
	return ""
}

// ordered says that the order matters.
func (h *haveObserved) ordered() string {
	if len(h.expected) > 1 {
		return ", in this order"
	}
	return ""
}

func (h *haveObserved) list() string {
	var lines []string
	for _, event := range h.expected {
		lines = append(lines, "  "+event.name())
	}
	return strings.Join(lines, "\n")
}

// explained says why the objects of a history still exist. What became of their owners is looked up in the whole
// journal, because a history may be about the dependents alone.
func explained(actual any) string {
	history, ok := actual.(*History)
	if !ok {
		return ""
	}
	subjects, err := history.Events()
	if err != nil {
		return ""
	}
	all, err := history.journal.Read(nil)
	if err != nil {
		return ""
	}
	return strings.Join(describe.Explain(all, subjects), "\n")
}
