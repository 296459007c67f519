package framework

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// History is a live view of the events of some objects, identified by uid. It can be matched with Expect and with Eventually.
type History struct {
	journal *journal.Journal
	// subjects are the objects.
	subjects []*Object
	// whole selects everything in the journal.
	whole bool
	// before contains the states of the objects before a watch started; nil when the journal contains their creation.
	before *journal.Journal
	// spec is the spec whose waits for the history are checked again after a timeout; nil for none.
	spec *spec
}

// Events returns the events of the subjects so far, oldest first. It fails when events may be missing because a watch was lost.
func (h *History) Events() ([]journal.Event, error) {
	if h.whole {
		return h.journal.Read(nil)
	}
	uids := map[types.UID]bool{}
	for _, subject := range h.subjects {
		uids[subject.GetUID()] = true
	}
	return h.journal.Read(func(event journal.Event) bool { return uids[event.Object.GetUID()] })
}

// own returns the events without those that only writes of other managers caused. An object that is left only to other managers counts as
// deleted at that point. It fails as Events does. It is incomplete when an event cannot be attributed because the watch with the earlier
// state lags behind.
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

// stateBefore returns the previous state of an object; nil when there is none. It reports whether the given state was found.
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

// String lists the events, one a line, for failure messages.
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
