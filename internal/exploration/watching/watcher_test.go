package watching

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

func event(name, resourceVersion string) history.Event {
	return history.Event{Type: history.Modified, Name: name, Object: model.Object{ResourceVersion: resourceVersion}}
}

func TestWatcher_Cut(t *testing.T) {
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
		"by a list": {
			streams: []history.Stream{
				{From: "1", Events: []history.Event{event("a", "4")}},
				{From: "6", Missed: []history.Event{event("quiet", "5")}, Events: []history.Event{event("a", "7")}},
			},
			taken: [][]history.Event{{event("a", "4")}, {}}, kept: [][]history.Event{{event("a", "7")}}, from: "6", position: "7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := &Watcher{quiet: "quiet", streams: test.streams, position: "7"}

			taken := w.take("5", true)

			g.Expect(eventsOf(taken)).To(Equal(test.taken))
			g.Expect(taken[len(taken)-1].To).To(Equal("5"))
			g.Expect(eventsOf(w.streams)).To(Equal(test.kept))
			g.Expect(w.streams[0].From).To(Equal(test.from))
			g.Expect(w.position).To(Equal(test.position))
		})
	}
}

func TestWatcher_CutInitialEvents(t *testing.T) {
	g := NewWithT(t)
	w := &Watcher{quiet: "quiet", building: true, streams: []history.Stream{{Events: []history.Event{event("quiet", "5")}}}}

	taken := w.take("5", false)

	g.Expect(taken).To(HaveExactElements(And(HaveField("From", ""), HaveField("Stalled", true))))
	g.Expect(w.take("6", false)).To(HaveExactElements(And(HaveField("From", ""), HaveField("Stalled", true))), "the next round")
}

func TestWatcher_MissedEvents(t *testing.T) {
	g := NewWithT(t)
	listed := func(name, resourceVersion string) *client.Object {
		object := fixtures.ConfigMap(name)
		object.SetResourceVersion(resourceVersion)
		return object
	}
	w := &Watcher{Held: map[string]bool{}, Live: map[string]model.Object{
		"same": {ResourceVersion: "1"}, "changed": {ResourceVersion: "2"}, "gone": {ResourceVersion: "3"},
	}}

	w.catchUp([]*client.Object{listed("same", "1"), listed("changed", "5"), listed("new", "6")})

	var missed []string
	for _, event := range w.missed {
		missed = append(missed, event.Type+" "+event.Name+" "+event.Object.ResourceVersion)
	}
	g.Expect(missed).To(Equal([]string{"MODIFIED changed 5", "MODIFIED new 6", "DELETED gone 3"}))
	g.Expect(w.Live).To(And(HaveLen(3), HaveKey("same"), HaveKey("changed"), HaveKey("new")))
}

func TestWatcher_Writers(t *testing.T) {
	g := NewWithT(t)
	w := &Watcher{Held: map[string]bool{}, Live: map[string]model.Object{}, writers: map[string][]string{}}
	for name, managers := range map[string][]string{"a": {client.Domain, "operator"}, "b": {client.Domain + "-apply"}, "other": {"manager"}} {
		object := fixtures.ConfigMap(name)
		for _, manager := range managers {
			object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager}))
		}
		w.observe(watch.Modified, object)
	}

	g.Expect(w.TakeWriters([]string{"a", "b"})).To(ConsistOf("operator"), "the run's own are left out, and those of objects of others")
	g.Expect(w.TakeWriters([]string{"a", "b"})).To(BeEmpty(), "the next round")
}

func TestSnapshot_Stray(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		stray  bool
	}{
		"of the round":       {map[string]string{RoundLabel: "1", client.RunLabel: "dc1"}, false},
		"without the round":  {map[string]string{client.RunLabel: "dc1"}, true},
		"without the run":    {map[string]string{RoundLabel: "1"}, true},
		"without any labels": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixtures.ConfigMap("a")
			object.SetLabels(test.labels)
			NewWithT(t).Expect(Snapshot(object).Stray).To(Equal(test.stray))
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

// TestWatcher_End ends a watch that would never end, and shows that the next one begins where it has ended.
func TestWatcher_End(t *testing.T) {
	g, from := NewWithT(t), make(chan string, 3)
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		if query.Get("watch") == "" {
			_, _ = io.WriteString(writer, `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": []}`)
			return
		}
		from <- query.Get("resourceVersion")
		_, _ = io.WriteString(writer, `{"type": "MODIFIED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "7"}}}`+"\n")
		writer.(http.Flusher).Flush()
		<-request.Context().Done()
	})
	connected, err := client.New(config, client.NewGuard(""))
	g.Expect(err).NotTo(HaveOccurred())
	collection, err := connected.CollectionOf(fixtures.ConfigMap("a"))
	g.Expect(err).NotTo(HaveOccurred())
	w := Of(collection, nil, "quiet", false)[0]
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	w.Start(ctx, connected, &watching)
	g.Eventually(from).Should(Receive(Equal("5")))
	g.Expect(w.Await(ctx, time.Minute, func() bool { return w.Live["a"].ResourceVersion == "7" })).To(BeTrue())

	w.End()

	g.Eventually(from).Should(Receive(Equal("7")))
	stop()
	watching.Wait()
	g.Expect(w.streams[len(w.streams)-1].Resumed).To(BeTrue())
}

func TestFinalizerOf(t *testing.T) {
	g := NewWithT(t)
	for finalizer, short := range map[string]string{
		Prefix + "held": "held", "kueue.x-k8s.io/resource-in-use": "kueue.x-k8s.io/resource-in-use", "addons.cluster.x-k8s.io": "/addons.cluster.x-k8s.io",
		"cleanup": "/cleanup", "orphan": model.Orphan, "foregroundDeletion": model.Foreground,
	} {
		g.Expect(shortName(finalizer)).To(Equal(short))
		g.Expect(FinalizerOf(short)).To(Equal(finalizer))
		g.Expect(model.Own(model.NamesOf(short)) != "").To(Equal(short == "held"), "only those of the run are its own: %s", finalizer)
	}
}
