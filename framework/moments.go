package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/matchers"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Moment is something that a history may show: the first event that fits. Once shown it stays shown.
type Moment struct {
	name string
	// kinds are the kinds of the objects that it is about.
	kinds []string
	// occurs finds where the moment begins and ends among the events; it is false when it has not happened.
	occurs func(events []Event) (begin, end int, happened bool)
}

// Added is when an object was created.
func Added(object *Object) Moment {
	return first("created", object, func(event Event) bool { return event.Type == watch.Added })
}

// Terminating is when an object first carried a deletionTimestamp.
func Terminating(object *Object) Moment {
	return first("terminating", object, func(event Event) bool {
		return event.Type != watch.Deleted && event.Object.GetDeletionTimestamp() != nil
	})
}

// Deleted is when an object was gone.
func Deleted(object *Object) Moment {
	return first("deleted", object, func(event Event) bool { return event.Type == watch.Deleted })
}

// Seen is when an object first matched, while it existed.
func Seen(object *Object, matcher types.GomegaMatcher) Moment {
	return first("seen to "+nameOf(matcher), object, func(event Event) bool {
		matches, err := matcher.Match(event.Object)
		return event.Type != watch.Deleted && err == nil && matches
	})
}

// Each is when the same has happened to all of some objects, in whatever order.
func Each(moment func(*Object) Moment, objects ...*Object) Moment {
	moments := make([]Moment, len(objects))
	names := make([]string, len(objects))
	var kinds []string
	for i, object := range objects {
		moments[i] = moment(object)
		names[i] = moments[i].name
		kinds = append(kinds, moments[i].kinds...)
	}
	return Moment{
		name: "in any order: " + strings.Join(names, ", "), kinds: kinds,
		occurs: func(events []Event) (int, int, bool) {
			begin, end, all := len(events), -1, true
			for _, moment := range moments {
				first, last, happened := moment.occurs(events)
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
func first(what string, object *Object, fits func(Event) bool) Moment {
	return Moment{
		name: title(object) + " " + what, kinds: []string{object.GetKind()},
		occurs: func(events []Event) (int, int, bool) {
			at := slices.IndexFunc(events, func(event Event) bool {
				return event.Object.GetUID() == object.GetUID() && fits(event)
			})
			return at, at, at >= 0
		},
	}
}

// Show matches a History in which all of these moments have happened, each after the one before it. Under Eventually
// it gives up as soon as the order is broken, because what happened first stays first. Moments of several kinds are an
// error: each kind is watched by itself, so what came first is not certain.
func Show(moments ...Moment) types.GomegaMatcher { return &show{moments: moments} }

type show struct {
	moments []Moment
	// broken is the pair that stands in the wrong order, if any.
	broken string
}

func (s *show) Match(actual any) (bool, error) {
	history, ok := actual.(*History)
	if !ok {
		return false, fmt.Errorf("Show matches a *History, not %T", actual)
	}
	if err := s.oneKind(); err != nil {
		return false, err
	}
	events, err := history.Events()
	if err != nil {
		return false, err
	}
	s.broken = ""
	complete, last := true, -1
	for i, moment := range s.moments {
		begin, end, happened := moment.occurs(events)
		if end >= 0 && (!complete || begin <= last) && i > 0 {
			s.broken = fmt.Sprintf("%s did not come after %s", moment.name, s.moments[i-1].name)
			return false, nil
		}
		complete = complete && happened
		last = max(last, end)
	}
	return complete, nil
}

// oneKind refuses to order what happens to objects of different kinds.
func (s *show) oneKind() error {
	var kinds []string
	for _, moment := range s.moments {
		kinds = append(kinds, moment.kinds...)
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); len(s.moments) > 1 && len(kinds) > 1 {
		return fmt.Errorf("the order of what happens to a %s is not certain: show each kind by itself", strings.Join(kinds, " and to a "))
	}
	return nil
}

// MatchMayChangeInTheFuture tells Eventually that a broken order stays broken.
func (s *show) MatchMayChangeInTheFuture(any) bool { return s.broken == "" }

func (s *show) FailureMessage(actual any) string {
	message := fmt.Sprintf("Expected, in this order:\n%s\nHappened:\n%v", s.list(), actual)
	if s.broken != "" {
		message = s.broken + ".\n" + message
	}
	return message + "\n" + explained(actual)
}

func (s *show) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("Expected not to happen, in this order:\n%s\nHappened:\n%v", s.list(), actual)
}

func (s *show) list() string {
	var lines []string
	for _, moment := range s.moments {
		lines = append(lines, "  "+moment.name)
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
	return strings.Join(Explain(events), "\n")
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
