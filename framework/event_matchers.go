package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// EventMatcher matches the first suitable event of a history. Once observed it stays observed.
type EventMatcher struct {
	// subject and verb form a sentence: `ConfigMap "owner"`, "deleted".
	subject, verb string
	// each are the events that must all occur, in any order; nil for a single one.
	each []EventMatcher
	// kinds are the kinds of the objects.
	kinds []string
	// occurs returns the indexes of the first and the last event of the match; false when there is no match.
	occurs func(events []journal.Event) (begin, end int, happened bool)
}

// Added matches the creation of an object.
func Added(object *Object) EventMatcher {
	return first("created", object, func(event journal.Event) bool { return event.Type == watch.Added })
}

// Terminating matches the first event in which an object has a deletionTimestamp.
func Terminating(object *Object) EventMatcher {
	return first("terminating", object, func(event journal.Event) bool {
		return event.Type != watch.Deleted && event.Object.GetDeletionTimestamp() != nil
	})
}

// Deleted matches the final deletion of an object.
func Deleted(object *Object) EventMatcher {
	return first("deleted", object, func(event journal.Event) bool { return event.Type == watch.Deleted })
}

// Matching matches the first event in which an existing object matches.
func Matching(object *Object, matcher types.GomegaMatcher) EventMatcher {
	return first("observed to "+describe.Matcher(matcher), object, func(event journal.Event) bool {
		matches, err := matcher.Match(event.Object)
		return event.Type != watch.Deleted && err == nil && matches
	})
}

// Each matches the same event of all objects, in any order.
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

// first matches the first suitable event of an object.
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

// fewNames is the maximum number of events of Each in a message.
const fewNames = 5

// name describes the event in a list: `ConfigMap "owner" deleted`.
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

// missing describes the events that have not occurred: `ConfigMap "owner" was not deleted`.
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

// clause describes the event as a clause: `ConfigMap "owner" was deleted`.
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

// HaveObserved matches a History with all of these events, in this order. Under Eventually it fails as soon as the order is wrong, which no
// later event can change. Objects of several kinds are an error, because each kind has its own watch and their order is not certain.
func HaveObserved(events ...EventMatcher) types.GomegaMatcher { return &haveObserved{expected: events} }

// HaveObservedOnly matches a History with exactly these events, in this order, except for writes of other managers.
func HaveObservedOnly(events ...EventMatcher) types.GomegaMatcher {
	return &haveObserved{expected: events, only: true}
}

type haveObserved struct {
	expected []EventMatcher
	// only excludes further events.
	only bool
	// broken describes the pair in the wrong order, if any.
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

// eventsOf returns the events to match, and whether they are complete.
func (h *haveObserved) eventsOf(history *History) (events []journal.Event, complete bool, err error) {
	if h.only {
		return history.own()
	}
	events, err = history.Events()
	return events, true, err
}

// oneKind returns an error for events of objects of different kinds.
func (h *haveObserved) oneKind() error {
	var kinds []string
	for _, event := range h.expected {
		kinds = append(kinds, event.kinds...)
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(h.expected) > 1 && len(kinds) > 1 {
		return fmt.Errorf("events of a %s have no certain order: observe each kind separately", strings.Join(kinds, " and of a "))
	}
	return nil
}

// MatchMayChangeInTheFuture stops Eventually when the order is wrong.
func (h *haveObserved) MatchMayChangeInTheFuture(any) bool { return h.broken == "" }

// tooEarly describes an event that precedes the one expected before it.
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
	message = strings.TrimSuffix(message+"\n"+explained(actual), "\n")
	if history, ok := actual.(*History); ok && history.spec != nil {
		history.spec.overdue.Store(&overdue{message, func() bool {
			matches, err := h.Match(actual)
			return matches && err == nil
		}})
	}
	return message
}

func (h *haveObserved) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("These events must not occur%s:\n%s\nObserved events:\n%v", h.ordered(), h.list(), actual)
}

// summary describes what is wrong: the order, or missing events.
func (h *haveObserved) summary(actual any) string {
	history, ok := actual.(*History)
	if h.broken != "" || !ok {
		return h.broken
	}
	events, err := history.Events()
	if err != nil {
		return ""
	}
	for _, event := range h.expected { // later events cannot have occurred either
		if missing := event.missing(events); len(missing) > 0 {
			return strings.Join(missing, ", ")
		}
	}
	return ""
}

// ordered adds that the order matters.
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

// explained describes why the objects of a history still exist. Owners are looked up in the whole journal, because a history may contain
// only the dependents.
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
