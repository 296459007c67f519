package framework

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// History is a live view of what happened to some objects, told apart by uid. Matchers look at it whenever they are
// asked, so it goes with Expect as well as with Eventually.
type History struct {
	journal *journal.Journal
	// subjects are the objects that it is about.
	subjects []*Object
	// whole says that it is about everything in the journal.
	whole bool
	// before is where what the objects were before a watch began is written down; nil where the journal itself tells from their
	// creation on.
	before *journal.Journal
}

// Events returns what has happened to the subjects so far, oldest first. It fails when a watch was lost and could not
// be resumed, because something may be missing then.
func (h *History) Events() ([]journal.Event, error) {
	return h.journal.Read(func(event journal.Event) bool {
		return h.whole || slices.ContainsFunc(h.subjects, func(subject *Object) bool { return event.Object.GetUID() == subject.GetUID() })
	})
}

// own are the events without those that others brought about by what they wrote, and nobody else, and without what
// leaves an object to them alone: where there were no others, its end would have come in that place. It fails as Events
// does. It is not complete yet where an event cannot be told, because the watch that shows what was before lags behind.
func (h *History) own() (events []journal.Event, complete bool, err error) {
	all, err := h.Events()
	if err != nil {
		return nil, false, err
	}
	last := map[types.UID]*Object{}
	for _, event := range all {
		earlier := last[event.Object.GetUID()]
		last[event.Object.GetUID()] = event.Object
		if event.Type != watch.Modified {
			events = append(events, event)
			continue
		}
		if earlier == nil && h.before != nil {
			var seen bool
			if earlier, seen, err = stateBefore(h.before, event.Object); !seen || err != nil {
				return events, false, err
			}
		}
		if earlier == nil || !ChangedByOtherManagers(earlier, event.Object) && !heldByOtherManagers(event.Object) {
			events = append(events, event)
		}
	}
	return events, true, nil
}

// stateBefore is the state of an object before this one, nil where there is none. It says whether this one was seen there.
func stateBefore(in *journal.Journal, state *Object) (before *Object, seen bool, err error) {
	states, err := in.Read(func(event journal.Event) bool { return event.Object.GetUID() == state.GetUID() })
	for _, event := range states {
		if event.Object.GetResourceVersion() == state.GetResourceVersion() {
			return before, true, err
		}
		before = event.Object
	}
	return nil, false, err
}

// String tells the history, one line an event, for the messages of matchers.
func (h *History) String() string {
	events, err := h.Events()
	if err != nil {
		return err.Error()
	}
	if len(events) == 0 {
		return "  none"
	}
	var lines []string
	for _, event := range events {
		lines = append(lines, fmt.Sprintf("  %8s  %-8s %s", event.At.Sub(events[0].At).Round(time.Millisecond), event.Type, describe.Object(event.Object)))
	}
	return strings.Join(lines, "\n")
}
