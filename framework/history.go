package framework

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
}

// Events returns what has happened to the subjects so far, oldest first. It fails when a watch was lost and could not
// be resumed, because something may be missing then.
func (h *History) Events() ([]journal.Event, error) {
	return h.journal.Read(func(event journal.Event) bool {
		return h.whole || slices.ContainsFunc(h.subjects, func(subject *Object) bool { return event.Object.GetUID() == subject.GetUID() })
	})
}

// String tells the history, one line an event, for the messages of matchers.
func (h *History) String() string {
	events, err := h.Events()
	if err != nil {
		return err.Error()
	}
	if len(events) == 0 {
		return "  (nothing happened)"
	}
	var lines []string
	for _, event := range events {
		lines = append(lines, fmt.Sprintf("  %8s  %-8s %s", event.At.Sub(events[0].At).Round(time.Millisecond), event.Type, describe.Object(event.Object)))
	}
	return strings.Join(lines, "\n")
}
