package history_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// recorder makes a history in which one request ends before the next one begins.
type recorder struct {
	history.History
	now time.Duration
}

func (r *recorder) did(operation model.Operation, outcome model.Outcome) *history.Request {
	r.Requests = append(r.Requests, history.Request{Client: 1, Call: r.now, Return: r.now + 1, Name: "a", Operation: operation, Outcome: outcome})
	r.now += 2
	return &r.Requests[len(r.Requests)-1]
}

// listed is a list, or a deletecollection, that shows one object or none.
func (r *recorder) listed(operation model.Operation, at string, objects ...model.Object) *history.Request {
	request := r.did(operation, model.Outcome{Code: 200})
	request.Name, request.Listing = "", &history.Listing{Versions: []string{at}, Objects: map[string]model.Object{}}
	for _, object := range objects {
		request.Listing.Objects["a"] = object
	}
	return request
}

func object(version, value string) model.Object {
	return model.Object{UID: "u", ResourceVersion: version, Value: value}
}

// contentOf is the change that creates an object.
func contentOf(object model.Object) model.Change {
	return model.Change{Value: &object.Value, Finalizers: &object.Finalizers}
}

func shows(code int, object model.Object) model.Outcome {
	return model.Outcome{Code: code, Object: &object}
}

var (
	creates = model.Operation{Verb: model.Create, Change: model.Change{Value: new("1")}}
	patches = model.Operation{Verb: model.Patch, Change: model.Change{Value: new("2")}}
	gets    = model.Operation{Verb: model.Get}
	deletes = model.Operation{Verb: model.Delete}
	lists   = model.Operation{Verb: model.Select}
)

// event is one of a version of the object.
func event(kind, version, value string) history.Event {
	return history.Event{Type: kind, Name: "a", Object: object(version, value)}
}

func bookmark(version string, initialEventsEnd bool) history.Event {
	return history.Event{Type: history.Bookmark, Object: model.Object{ResourceVersion: version}, InitialEventsEnd: initialEventsEnd}
}

// life is a whole life of one object: created as version 11, patched to 12, deleted with 13. One watch has seen all of it.
func life() *recorder {
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("11", "1")))
	r.did(patches, shows(200, object("12", "2")))
	r.did(deletes, model.Outcome{Code: 200})
	r.did(gets, model.Outcome{Code: 404})
	r.Streams = []history.Stream{stream("10", "20")}
	return r
}

func stream(from, to string) history.Stream {
	return history.Stream{ID: "a watch", From: from, To: to, Events: []history.Event{
		event(history.Added, "11", "1"), event(history.Modified, "12", "2"), event(history.Deleted, "13", "2"), bookmark("20", false),
	}}
}

// broken are the properties that a history breaks.
func broken(h history.History) []string {
	ids := []string{}
	for _, finding := range h.Check() {
		ids = append(ids, finding.Property.ID)
	}
	return ids
}

func TestALifeThatEverythingShowsBreaksNothing(t *testing.T) {
	r := life()
	r.Requests[3].Call, r.Requests[3].Return = 20, 21
	r.listed(lists, "13")
	r.Streams = append(r.Streams,
		history.Stream{ID: "a resumed watch", From: "12", Resumed: true, To: "20", Events: []history.Event{event(history.Deleted, "13", "2")}},
		history.Stream{ID: "a watch from initial events", To: "20", Events: []history.Event{
			event(history.Added, "12", "2"), bookmark("12", true), event(history.Deleted, "13", "2"),
		}},
	)
	NewWithT(t).Expect(r.Check()).To(BeEmpty())
}

func TestALostApplyMayCreateAnObjectAfterTheGarbageCollectorHasRemovedTheOneBefore(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("11", "1")))
	orphaned := object("12", "1")
	orphaned.Terminating, orphaned.Finalizers = true, model.Orphan
	r.did(model.Operation{Verb: model.Delete, Policy: model.PolicyOrphan}, shows(200, orphaned))
	r.did(model.Operation{Verb: model.Apply, Change: patches.Change}, model.Outcome{})
	read := r.did(gets, shows(200, model.Object{UID: "v", ResourceVersion: "14", Value: "2"}))
	g.Expect(broken(r.History)).To(BeEmpty())

	read.Outcome.Object.Value = "1"
	g.Expect(broken(r.History)).To(Equal([]string{history.Linearizable.ID}))
}

func TestAWatchNeedNotDeliverWhatItMissedBecauseItsPositionHadExpired(t *testing.T) {
	g := NewWithT(t)
	initial := history.Stream{ID: "a watch from initial events", To: "20", Events: []history.Event{bookmark("15", true)}}
	r := life()
	r.Streams = []history.Stream{
		{ID: "a watch", From: "10", Events: []history.Event{event(history.Added, "11", "1"), event(history.Modified, "12", "2")}},
		{ID: "a watch", From: "15", To: "20", Missed: []history.Event{event(history.Deleted, "12", "2")}},
		initial,
	}
	g.Expect(broken(r.History)).To(BeEmpty())

	r.Streams[1].From, r.Streams[1].Missed = "12", nil
	g.Expect(broken(r.History)).To(ConsistOf(history.WatchInitial.ID, history.WatchComplete.ID), "its position had not expired")
}

func TestAnObjectThatDidNotChangeWhileAPositionHadExpiredIsChecked(t *testing.T) {
	r := life()
	r.Streams = []history.Stream{
		{ID: "a watch", From: "10", Events: []history.Event{event(history.Added, "11", "1")}},
		{ID: "a watch", From: "11", To: "14", Events: []history.Event{event(history.Deleted, "13", "2")}},
		{ID: "a watch", From: "15", To: "20", Missed: []history.Event{{Type: history.Modified, Name: "b", Object: object("14", "3")}}},
	}
	NewWithT(t).Expect(broken(r.History)).To(Equal([]string{history.WatchComplete.ID}))
}

func TestRequestsAreExplainedInAnyOrderOfConcurrentOnes(t *testing.T) {
	g := NewWithT(t)
	r := life()
	read := r.did(gets, shows(200, object("11", "1")))
	read.Client, read.Call, read.Return = 2, 0, 3
	g.Expect(broken(r.History)).To(BeEmpty(), "it may have been before the patch")

	read.Call, read.Return = 5, 6
	g.Expect(broken(r.History)).To(Equal([]string{history.Linearizable.ID}), "it was after the delete")
}

func TestALostRequestMayTakeEffectAtAnyLaterTimeOrNever(t *testing.T) {
	for name, read := range map[string]model.Outcome{"never": {Code: 404}, "later": shows(200, object("11", "1"))} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{History: history.History{Names: []string{"a"}}}
			r.did(creates, model.Outcome{})
			r.did(gets, model.Outcome{Code: 404})
			r.did(gets, read)
			NewWithT(t).Expect(broken(r.History)).To(BeEmpty())
		})
	}
}

func TestTheRequestThatNoOrderExplainsIsNamed(t *testing.T) {
	g := NewWithT(t)
	r := life()
	r.Requests[1].Outcome = shows(200, object("12", "1")) // the patch is lost
	r.Streams = nil

	findings := r.Check()
	g.Expect(findings).To(HaveLen(1))
	g.Expect(findings[0].Request).To(Equal(1))
	g.Expect(findings[0].Rule).To(Equal(model.Current))
	g.Expect(findings[0].Message).To(HavePrefix("no order of the requests explains this response of client 1: patch on uid u"))
}

func TestARemovalThatIsDecidedEarlierIsObservedAndNotPromised(t *testing.T) {
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("11", "1")))
	held := object("12", "1")
	held.Finalizers = "f"
	r.did(model.Operation{Verb: model.Patch, Change: model.Change{Finalizers: new(model.Names("f"))}}, shows(200, held))
	r.did(gets, model.Outcome{Code: 404})
	remove := r.did(deletes, model.Outcome{Code: 200})
	remove.Call, remove.Return = 0, 4 // at the same time as the patch

	NewWithT(t).Expect(broken(r.History)).To(Equal([]string{history.AtomicRemoval.ID}))
}

// Both a client and the garbage collector remove the last finalizer. The client's request removes the object, and the collector's the next one.
func TestTheCollectorMayRemoveTheNextObjectOfTheName(t *testing.T) {
	for finalizer, expected := range map[string]*history.Property{model.Orphan: history.AtomicRemoval, "f": history.Linearizable} {
		t.Run(finalizer, func(t *testing.T) {
			r := &recorder{History: history.History{Names: []string{"a"}}}
			first := object("11", "1")
			first.Finalizers = model.Names(finalizer)
			r.did(model.Operation{Verb: model.Create, Change: contentOf(first)}, shows(201, first))
			first.ResourceVersion, first.Terminating = "12", true
			r.did(deletes, shows(200, first))
			released := first
			released.Finalizers = ""
			r.did(model.Operation{Verb: model.Patch, Change: model.Change{Finalizers: new(model.Names(""))}}, shows(200, released))
			next := object("14", "2")
			next.UID, next.Finalizers = "v", "f"
			r.did(model.Operation{Verb: model.Create, Change: contentOf(next)}, shows(201, next))
			r.did(gets, model.Outcome{Code: 404})

			NewWithT(t).Expect(broken(r.History)).To(Equal([]string{expected.ID}))
		})
	}
}

func TestARefusalWithoutAReasonIsObservedAndNotPromised(t *testing.T) {
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("11", "1")))
	r.did(deletes, model.Outcome{Code: 409})
	NewWithT(t).Expect(broken(r.History)).To(Equal([]string{history.Refusals.ID}))
}

// A store answers a delete whose object is gone with a conflict, as if it had found another object.
func TestADeleteOfWhatIsGoneMustNotBeAConflict(t *testing.T) {
	for name, test := range map[string]struct {
		required model.Operation
		next     bool
		expected []string
	}{
		"a uid":                           {model.Operation{Verb: model.Delete, UID: "u"}, false, []string{history.RefusedByUID.ID}},
		"a uid that another object lacks": {model.Operation{Verb: model.Delete, UID: "u"}, true, []string{}},
		"a resourceVersion":               {model.Operation{Verb: model.Delete, ResourceVersion: "11"}, false, []string{history.RefusedByVersion.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{History: history.History{Names: []string{"a"}}}
			r.did(creates, shows(201, object("11", "1")))
			r.did(deletes, model.Outcome{Code: 200})
			if test.next {
				next := object("13", "1")
				next.UID = "v"
				r.did(creates, shows(201, next))
			}
			r.did(test.required, model.Outcome{Code: 409})
			NewWithT(t).Expect(broken(r.History)).To(Equal(test.expected))
		})
	}
}

func TestADeletecollectionDeletesWhatItSelects(t *testing.T) {
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("11", "1")))
	r.listed(deletes, "11", object("11", "1"))
	last := r.did(gets, model.Outcome{Code: 404})
	NewWithT(t).Expect(broken(r.History)).To(BeEmpty())

	last.Outcome = shows(200, object("11", "1"))
	NewWithT(t).Expect(broken(r.History)).To(Equal([]string{history.Linearizable.ID}))

	last.Outcome = model.Outcome{Code: 404}
	r.Requests[1].Listing.Objects = nil
	NewWithT(t).Expect(broken(r.History)).To(Equal([]string{history.CollectionRequests.ID}))
}

func TestEachPropertyOfListsAndWatchesIsBrokenByWhatItForbids(t *testing.T) {
	events := func(r *recorder, events ...history.Event) { r.Streams[0].Events = events }
	added, modified, deleted := event(history.Added, "11", "1"), event(history.Modified, "12", "2"), event(history.Deleted, "13", "2")
	selected := func(label string, events ...history.Event) history.Stream {
		return history.Stream{ID: "a watch by label", Label: label, From: "10", To: "20", Events: events}
	}
	for name, test := range map[string]struct {
		change func(*recorder)
		broken *history.Property
	}{
		"an event that is missing":            {func(r *recorder) { events(r, added, deleted) }, history.WatchComplete},
		"an end that no watch shows":          {func(r *recorder) { events(r, added, modified) }, history.WatchComplete},
		"a watch that stalls":                 {func(r *recorder) { r.Streams[0].Stalled = true }, history.WatchComplete},
		"an event twice":                      {func(r *recorder) { events(r, added, modified, modified, deleted) }, history.WatchOnce},
		"an event too early":                  {func(r *recorder) { events(r, modified, added, deleted) }, history.WatchOrder},
		"an event of an earlier version":      {func(r *recorder) { r.Streams[0].From = "11" }, history.WatchOrder},
		"an event again after resuming":       {func(r *recorder) { r.Streams[0].From, r.Streams[0].Resumed = "11", true }, history.WatchResumed},
		"an event missing after resuming":     {func(r *recorder) { events(r, modified, deleted); r.Streams[0].Resumed = true }, history.WatchResumed},
		"a bookmark too early":                {func(r *recorder) { events(r, added, bookmark("12", false), modified, deleted) }, history.WatchOrder},
		"a bookmark too late":                 {func(r *recorder) { events(r, added, modified, bookmark("11", false), deleted) }, history.WatchBookmarks},
		"the wrong type":                      {func(r *recorder) { events(r, added, event(history.Added, "12", "2"), deleted) }, history.WatchComplete},
		"a DELETED of an earlier state":       {func(r *recorder) { events(r, added, modified, event(history.Deleted, "13", "1")) }, history.WatchDeleted},
		"an event with another state":         {func(r *recorder) { events(r, added, event(history.Modified, "12", "3"), deleted) }, history.SameVersion},
		"a list that lacks an object":         {func(r *recorder) { r.listed(lists, "11").Version = "0" }, history.ListSnapshot},
		"a list with a state of another time": {func(r *recorder) { r.listed(lists, "12", object("11", "1")).Version = "0" }, history.ListSnapshot},
		"a list with what is gone":            {func(r *recorder) { r.listed(lists, "13", object("12", "2")).Version = "0" }, history.ListSnapshot},
		"pages of two moments": {func(r *recorder) {
			list := r.listed(lists, "13")
			list.Listing.Versions = append(list.Listing.Versions, "14")
		}, history.ListSnapshot},
		"a list that is older than a response": {func(r *recorder) { r.listed(lists, "10") }, history.ListForward},
		"a list that is older than required":   {func(r *recorder) { r.listed(lists, "10").Version = "13" }, history.ListForward},
		"a list of another version": {func(r *recorder) {
			list := r.listed(lists, "14")
			list.Version, list.Match = "13", "Exact"
		}, history.ListForward},
		"initial events that lack an object": {func(r *recorder) {
			r.Streams = append(r.Streams, history.Stream{ID: "initial", To: "20", Events: []history.Event{bookmark("12", true), deleted}})
		}, history.WatchInitial},
		"a label that no event shows": {func(r *recorder) {
			r.relabel()
			r.Streams = append(r.Streams, selected("x", r.labelled(history.Added)))
		}, history.WatchSelector},
		"an event without the label": {func(r *recorder) { r.Streams = append(r.Streams, selected("x", added)) }, history.WatchSelector},
		"streams with different orders": {func(r *recorder) {
			r.Streams = append(r.Streams, history.Stream{ID: "another", From: "10", Events: []history.Event{modified, added, deleted}})
		}, history.WatchSameOrder},
	} {
		t.Run(name, func(t *testing.T) {
			r := life()
			test.change(r)
			NewWithT(t).Expect(broken(r.History)).To(ContainElement(test.broken.ID))
		})
	}
}

// relabel makes the second version of the object match a selector, and its last one not.
func (r *recorder) relabel() {
	operation := patches
	operation.Change.Label = new("x")
	r.Requests[1].Operation, r.Requests[1].Outcome.Object.Label = operation, "x"
	r.Streams[0].Events[1].Object.Label, r.Streams[0].Events[2].Object.Label = "x", "x"
}

func (r *recorder) labelled(kind string) history.Event {
	labelled := event(kind, "12", "2")
	labelled.Object.Label = "x"
	return labelled
}

func TestWithoutAnOrderOfVersionsOnlyTheRestIsChecked(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("x7", "1")))
	r.did(gets, shows(200, object("x7", "1")))
	r.listed(lists, "", object("x7", "1"))
	g.Expect(r.Comparable()).To(BeFalse())
	g.Expect(broken(r.History)).To(BeEmpty())

	r.did(gets, shows(200, object("x8", "1")))
	g.Expect(broken(r.History)).To(Equal([]string{history.Linearizable.ID}))
}

func TestEveryPropertyIsStatedAndNamedOnce(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, property := range history.Properties {
		g.Expect(seen).NotTo(HaveKey(property.ID))
		seen[property.ID] = true
		g.Expect(property.Rule.Text).To(MatchRegexp(`^[A-Z].*\.$`), property.ID)
		g.Expect(property.Rule.Source).NotTo(BeEmpty())
		g.Expect(property.Rule.Promise == "").To(Equal(property.Observed), fmt.Sprint(property.ID, " is promised or observed"))
	}
}
