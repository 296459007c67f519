package history_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// at is an event at a second of the round.
func at(second int, event history.Event) history.Event {
	event.At = time.Duration(second) * time.Second
	return event
}

// asked is a request that took a second from then on.
func asked(second int, verb model.Verb, name string, code int) history.Request {
	call := time.Duration(second) * time.Second
	return history.Request{
		Call: call, Return: call + time.Second, Name: name, Operation: model.Operation{Verb: verb}, Outcome: model.Outcome{Code: code},
	}
}

func TestNamespacesAreDeletedAsPromised(t *testing.T) {
	const home = "n"
	// The namespace is deleted at 10 s and gone at 20 s.
	deletes := asked(10, model.Delete, home, 200)
	terminating := at(11, seen(history.Modified, home, "110", terminatingWith()))
	gone := []history.Event{named(home, terminating), named(home, at(20, seen(history.Deleted, home, "200", terminatingWith())))}
	created, removed := at(1, seen(history.Added, "x", "10")), at(15, seen(history.Deleted, "x", "150"))
	held := func(object *model.Object) { object.Finalizers = "a" }
	for name, test := range map[string]struct {
		events     []history.Event
		namespaces []history.Event
		requests   []history.Request
		broken     *history.Property
	}{
		"with what is in them": {[]history.Event{created, removed}, gone, []history.Request{deletes}, nil},
		"before which a client deletes an object": {
			[]history.Event{created, at(5, seen(history.Deleted, "x", "50"))}, gone, []history.Request{deletedBy("x", ""), deletes}, nil,
		},
		"after a client has released an object": {
			[]history.Event{
				at(1, seen(history.Added, "x", "10", held)), at(12, seen(history.Modified, "x", "120", terminatingWith("a"))),
				at(15, seen(history.Deleted, "x", "150", terminatingWith("a"))),
			}, gone, []history.Request{deletes, asked(13, model.Patch, "x", 200)}, nil,
		},
		"while a client holds an object": {
			[]history.Event{at(1, seen(history.Added, "x", "10", held))}, gone[:1], []history.Request{deletes}, nil,
		},
		"and refuse new objects": {
			[]history.Event{created, removed}, gone,
			[]history.Request{deletes, asked(12, model.Create, "x", 403), asked(22, model.Create, "x", 404), asked(24, model.Get, "x", 404)}, nil,
		},
		"and accept an object in a race": {
			[]history.Event{created, removed}, gone, []history.Request{deletes, asked(10, model.Create, "x", 201)}, nil,
		},
		"and an object appears": {
			[]history.Event{created, removed}, gone, []history.Request{deletes, asked(12, model.Create, "x", 201)}, history.NamespaceClosed,
		},
		"and an object survives": {
			[]history.Event{created}, gone, []history.Request{deletes, asked(22, model.Get, "x", 200)}, history.NamespaceEmptied,
		},
		"and one appears later": {
			[]history.Event{created, removed}, gone, []history.Request{deletes, asked(22, model.Create, "x", 201)}, history.NamespaceEmptied,
		},
		"and a read shows that they are gone, but an object survives": {
			[]history.Event{created}, gone[:1],
			[]history.Request{deletes, asked(20, model.Get, home, 404), asked(22, model.Get, "x", 200)}, history.NamespaceEmptied,
		},
		"and an object goes although a finalizer holds it": {
			[]history.Event{
				at(1, seen(history.Added, "x", "10", held)), at(12, seen(history.Modified, "x", "120", terminatingWith("a"))),
				at(15, seen(history.Deleted, "x", "150", terminatingWith("a"))),
			}, gone, []history.Request{deletes}, history.NamespaceHeld,
		},
		"and an object was deleted before": {
			[]history.Event{created, at(5, seen(history.Deleted, "x", "50"))}, gone, []history.Request{deletes}, history.NamespaceKept,
		},
		"and never end": {[]history.Event{created, removed}, gone[:1], []history.Request{deletes}, history.NamespaceCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := graphOf("", test.events, test.requests...)
			whole.Homes, whole.Namespaces, whole.Streams[0].To = map[string]string{"x": home}, test.namespaces, "900"
			broken := map[*history.Property]bool{}
			for _, finding := range whole.Check() {
				broken[finding.Property] = true
			}
			if test.broken == nil {
				g.Expect(broken).To(BeEmpty())
			} else {
				g.Expect(broken).To(And(HaveKey(test.broken), HaveLen(1)))
			}
		})
	}
}

func TestWhatConcernsANamespace(t *testing.T) {
	g := NewWithT(t)
	whole := history.History{Homes: map[string]string{"x": "n", "y": "n", "z": "m"}}
	g.Expect(whole.Concerns("x", "n")).To(BeTrue())
	g.Expect(whole.Concerns("n", "y")).To(BeTrue())
	g.Expect(whole.Concerns("x", "y")).To(BeFalse())
	g.Expect(whole.Concerns("m", "x")).To(BeFalse())
	g.Expect(whole.IsNamespace("m")).To(BeTrue())
	g.Expect(whole.IsNamespace("x")).To(BeFalse())
}
