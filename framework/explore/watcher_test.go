package explore

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

func event(name, resourceVersion string) history.Event {
	return history.Event{Type: history.Modified, Name: name, Object: model.Object{ResourceVersion: resourceVersion}}
}

func TestStreamsAreCutWhereAVersionWasDelivered(t *testing.T) {
	initial := history.Event{Type: history.Bookmark, InitialEventsEnd: true, Object: model.Object{ResourceVersion: "6"}}
	for name, test := range map[string]struct {
		streams  []history.Stream
		taken    [][]history.Event
		kept     [][]history.Event
		from     string
		position string
	}{
		"at its end": {
			streams: []history.Stream{{From: "1", Events: []history.Event{event("a", "4"), event("quiet", "5")}}},
			taken:   [][]history.Event{{event("a", "4"), event("quiet", "5")}}, kept: [][]history.Event{{}}, from: "5", position: "5",
		},
		"before its end": {
			streams: []history.Stream{{From: "1", Events: []history.Event{event("quiet", "5"), event("a", "7")}}},
			taken:   [][]history.Event{{event("quiet", "5")}}, kept: [][]history.Event{{event("a", "7")}}, from: "5", position: "7",
		},
		"in an earlier stream": {
			streams: []history.Stream{
				{From: "1", Events: []history.Event{event("quiet", "5")}}, {From: "5", Resumed: true, Events: []history.Event{event("a", "7")}},
			},
			taken: [][]history.Event{{event("quiet", "5")}}, kept: [][]history.Event{{}, {event("a", "7")}}, from: "5", position: "7",
		},
		"among initial events": {
			streams: []history.Stream{{Events: []history.Event{event("quiet", "5"), event("a", "3"), initial, event("a", "7")}}},
			taken:   [][]history.Event{{event("quiet", "5"), event("a", "3"), initial}}, kept: [][]history.Event{{event("a", "7")}}, from: "6", position: "7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := &watcher{quiet: "quiet", streams: test.streams, position: "7"}

			taken := w.take("5", true)

			g.Expect(eventsOf(taken)).To(Equal(test.taken))
			g.Expect(taken[len(taken)-1].To).To(Equal("5"))
			g.Expect(eventsOf(w.streams)).To(Equal(test.kept))
			g.Expect(w.streams[0].From).To(Equal(test.from))
			g.Expect(w.position).To(Equal(test.position))
		})
	}
}

func eventsOf(streams []history.Stream) [][]history.Event {
	var events [][]history.Event
	for _, stream := range streams {
		events = append(events, append([]history.Event{}, stream.Events...))
	}
	return events
}
