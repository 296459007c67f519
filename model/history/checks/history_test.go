package checks_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
	"github.com/deletion-conformance/deletion-conformance/model/history/removals"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
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

// event is one of a version of the object, after all requests.
func event(kind, version, value string) history.Event {
	return history.Event{At: time.Hour, Type: kind, Name: "a", Object: object(version, value)}
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
	for _, violation := range checks.Violations(&h) {
		ids = append(ids, violation.Property.ID)
	}
	return ids
}

func TestRequests(t *testing.T) {
	expectEach(t, func(*history.History) {}, []row{
		// One order explains all responses.
		{"a read before a concurrent patch", "create a value 1 : 201 version 11; get a at 2 until 9 : 200; patch a value 2 : 200 version 12", nil},
		{"a read after a patch", "create a value 1 : 201 version 11; patch a value 2 : 200 version 12; get a : 200 value 1 version 11", requests.Linearizable},
		{"a read from a cache after a delete", "create a : 201 version 11; delete a; get a from 0 : 200 version 11", nil},
		{"requests on another object", "create a : 201 version 11; create b : 201 version 12", nil},
		{"the first response is not explained", "get a : 200 version 11", requests.Linearizable},
		{"a delete shows another object", "create a : 201 version 11; delete a : 200 uid v version 11", requests.Linearizable},
		{"a create never takes effect that was lost", "create a : lost; get a : 404; get a : 404", nil},
		{"a create takes effect later that was lost", "create a value 1 : lost; get a : 404; get a : 200 value 1 version 11", nil},
		{"a create takes effect twice that was lost", "create a : lost; get a : 200 version 11; delete a; get a : 200 uid v version 12", requests.Linearizable},
		{"an apply may create an object that was lost", "create a : 201 version 11; delete a Orphan : 200 orphan version 12; apply a value 2 : lost; get a : 200 new uid v version 14 value 2", nil},
		{"an apply creates another object than it names", "create a : 201 version 11; delete a Orphan : 200 orphan version 12; apply a value 2 : lost; get a : 200 new uid v version 14 value 1", requests.Linearizable},
		{"a list with what is gone", "create a : 201 version 11; delete a; list : 200 14 a", requests.Linearizable},
		{"a list that shows no list", "create a : 201 version 11; list : 200", nil},

		// A removal is decided and done at one moment.
		{"a delete decides before a patch", "create a : 201 version 11; get a : 200 version 11; patch a value 3 dry-run : 200 version 11; patch a value 9 version 7 : 409; delete a at 4 until 9; patch a holds f at 5 : 200 version 12; get a at 10 : 404", history.AtomicRemoval},
		{"a lost delete decides before a patch", "create a : 201 version 11; delete a : lost; patch a holds f : 200 version 12; get a : 404", history.AtomicRemoval},
		{"a delete decides before its precondition fails", "create a : 201 version 11; delete a version 11 at 4 until 9; patch a value 2 at 5 : 200 version 12; get a at 10 : 404", requests.Linearizable},
		{"an update decides before its version is stale", "create a holds f : 201 version 11; delete a : 200 terminating version 12; update a version 12 holds nothing at 4 until 9 : 200 version 12; apply a value 2 at 5 : 200 version 13 holds f; get a at 10 : 404", history.AtomicRemoval},
		// Both a client and the garbage collector remove the last finalizer. The client's request removes the object, and the collector's the next one.
		{"the collector removes the next object of the name", "create a holds orphan : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing : 200 version 12; create a holds f : 201 uid v version 14; get a : 404", history.AtomicRemoval},
		{"what holds the object is not the collector's", "create a holds g : 201 version 11; delete a : 200 terminating version 12; patch a holds nothing : 200 version 12; create a holds f : 201 uid v version 14; get a : 404", requests.Linearizable},

		// A refusal has a reason.
		{"a delete is refused", "create a : 201 version 11; delete a : 409", requests.Refusals},
		{"a patch is refused with the first code of refusals", "create a : 201 version 11; patch a value 2 : 400", requests.Refusals},
		{"a patch fails", "create a : 201 version 11; patch a value 2 : 500", requests.Linearizable},
		{"an update with the current version is refused", "create a : 201 version 11; update a version 11 value 2 : 409", requests.Refusals},
		// A store answers a delete whose object is gone with a conflict, as if it had found another object.
		{"a delete with a uid is refused, as the object is gone", "create a : 201 version 11; delete a; delete a uid a : 409", requests.RefusedByUID},
		{"a delete with a uid is refused, as another object exists", "create a : 201 version 11; delete a; create a : 201 uid v version 13; delete a uid a : 409", nil},
		{"a delete with a version is refused, as the object is gone", "create a : 201 version 11; delete a; delete a version 11 : 409", requests.RefusedByVersion},
		{"a delete with the current version finds nothing", "create a : 201 version 11; delete a version 11 : 404", requests.Linearizable},

		// A deletecollection deletes what it selects.
		{"a deletecollection", "create a : 201 version 11; deletecollection : 200 11 a; get a : 404", nil},
		{"a deletecollection without a list", "create a : 201 version 11; deletecollection; get a : 404", nil},
		{"a deletecollection that deletes nothing", "create a : 201 version 11; deletecollection : 200 11 a; get a : 200 version 11", requests.Linearizable},
		{"a deletecollection that does not select", "create a : 201 version 11; deletecollection : 200 11; get a : 404", requests.CollectionRequests},
		{"a deletecollection by label", "create a : 201 version 11; deletecollection label x; get a : 200 version 11", nil},
		{"a deletecollection by label that matches", "create a label x : 201 version 11; deletecollection label x; get a : 200 version 11", requests.Linearizable},
		{"a dry-run", "create a : 201 version 11; deletecollection dry-run : 200 11 a; get a : 200 version 11", nil},
		{"a dry-run that fails", "create a : 201 version 11; deletecollection dry-run : 403; get a : 404", requests.Linearizable},
		{"a lost one deletes", "create a : 201 version 11; deletecollection : lost; get a : 404", nil},
		{"a lost one deletes nothing", "create a : 201 version 11; deletecollection : lost; get a : 200 version 11", nil},
		{"a failed one has deleted", "create a : 201 version 11; deletecollection : 403; get a : 404", nil},
		{"a failed one deletes later", "create a : 201 version 11; deletecollection : 403; get a : 200 version 11; get a : 404", nil},
		{"a failed one has deleted, and a patch is refused", "create a : 201 version 11; patch a value 1 : 422; deletecollection : 422; get a : 404", requests.Refusals},

		// One resourceVersion shows one object.
		{"a dry-run shows what is not stored", "create a : 201 version 11; patch a value 3 dry-run : 200 version 11", nil},
		{"a response without a resourceVersion", "create a : 201 version 11; get a : 200; patch a value 3 : lost; get a : 200 version - value 3; patch a value 4 : lost; get a : 200 version - value 4", nil},
		{"a delete shows what it has marked", "create a holds f : 201 version 11; ADDED a version 11 holds f; delete a : 200 terminating version 12; MODIFIED a version 12 label y", history.SameVersion},
		{"a delete shows what it has removed", "create a : 201 version 11; ADDED a version 11; delete a : 200 version 12; DELETED a version 12", nil},
		{"a patch shows what it has removed", "create a holds f : 201 version 11; ADDED a version 11 holds f; delete a : 200 terminating version 12; MODIFIED a version 12; patch a holds nothing : 200 version 13; DELETED a version 13 holds f", nil},
	})
}

func TestExplain(t *testing.T) {
	for name, test := range map[string]struct {
		clauses string
		request int
		rule    model.Rule
	}{
		"a change is lost":                   {"create a value 1 : 201 version 11; patch a value 2 : 200 value 1 version 12", 1, model.Current},
		"the first response to arrive":       {"create a : 201 version 11; get a at 5 : 200 value 8 version 12; get a at 3 : 200 value 9 version 13", 2, model.Current},
		"a request that was explained once":  {"get a : 404; create a : 201 version 11; get a : 404", 2, model.Persists},
		"a removal that was decided earlier": {"create a : 201 version 11; delete a version 11 at 4 until 9; patch a value 2 at 5 : 200 version 12; get a at 10 : 404", 1, model.Preconditions},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			violations := checks.Violations(historyOf(t, test.clauses))
			g.Expect(violations).To(HaveLen(1))
			g.Expect(violations[0].Request).To(Equal(test.request))
			g.Expect(violations[0].Rule).To(Equal(test.rule))
			g.Expect(violations[0].Message).To(HavePrefix("no order of the requests explains this response of client 1: "))
		})
	}
}

// TestStreamsAndLists changes what one life has shown: created as version 11, patched to 12, deleted with 13.
func TestStreamsAndLists(t *testing.T) {
	added, modified, deleted := event(history.Added, "11", "1"), event(history.Modified, "12", "2"), event(history.Deleted, "13", "2")
	end, first, second := bookmark("20", false), object("11", "1"), object("12", "2")
	delivers := func(events ...history.Event) func(*recorder) {
		return func(r *recorder) { r.Streams[0].Events = events }
	}
	also := func(changes ...func(*recorder)) func(*recorder) {
		return func(r *recorder) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	// another adds a stream of another watch.
	another := func(stream history.Stream, events ...history.Event) func(*recorder) {
		return func(r *recorder) {
			stream.ID, stream.Events = cmp.Or(stream.ID, "another"), events
			r.Streams = append(r.Streams, stream)
		}
	}
	byLabel := func(events ...history.Event) func(*recorder) {
		return another(history.Stream{Label: "x", From: "10", To: "20"}, events...)
	}
	initial := func(events ...history.Event) func(*recorder) { return another(history.Stream{To: "20"}, events...) }
	stalled := func(events ...history.Event) func(*recorder) {
		return another(history.Stream{To: "20", Stalled: true}, events...)
	}
	// streams are those of the watch, instead of its first one.
	streams := func(streams ...history.Stream) func(*recorder) {
		return func(r *recorder) {
			for i := range streams {
				streams[i].ID = "a watch"
			}
			r.Streams = streams
		}
	}
	events := func(events ...history.Event) []history.Event { return events }
	// listed adds a list that may be old.
	listed := func(at string, objects ...model.Object) func(*recorder) {
		return func(r *recorder) { r.listed(lists, at, objects...).Version = "0" }
	}
	listedByLabel := func(at string, objects ...model.Object) func(*recorder) {
		return func(r *recorder) {
			r.listed(model.Operation{Verb: model.Select, Label: "x"}, at, objects...).Version = "0"
		}
	}
	// last changes the last request.
	last := func(change func(*history.Request)) func(*recorder) {
		return func(r *recorder) { change(&r.Requests[len(r.Requests)-1]) }
	}
	recent := func(at string, call, end time.Duration, objects ...model.Object) func(*recorder) {
		return also(listed(at, objects...), last(func(list *history.Request) { list.Version, list.Call, list.Return = "", call, end }))
	}
	labeled := func(event history.Event) history.Event { event.Object.Label = "x"; return event }
	withLabel := func(object model.Object) model.Object { object.Label = "x"; return object }
	// labels are the labels of both versions.
	labels := func(one, two string) func(*recorder) {
		return func(r *recorder) {
			for i, label := range []string{one, two} {
				r.Requests[i].Operation.Change.Label, r.Requests[i].Outcome.Object.Label = &label, label
			}
			for i, label := range []string{one, two, two} {
				r.Streams[0].Events[i].Object.Label = label
			}
		}
	}
	ofB := func(event history.Event) history.Event { event.Name, event.Object.UID = "b", "b"; return event }
	withB := func(r *recorder) { r.Names = append(r.Names, "b") }
	for name, test := range map[string]struct {
		change func(*recorder)
		broken []*history.Property
	}{
		// What a watch delivers.
		"everything":                                  {also(), nil},
		"a missing event":                             {delivers(added, deleted), only(reads.WatchComplete)},
		"a missing event before To":                   {delivers(added, modified), only(reads.WatchComplete)},
		"a missing event before the last one":         {also(delivers(added, deleted), func(r *recorder) { r.Streams[0].To = "" }), only(reads.WatchComplete)},
		"an event after To":                           {func(r *recorder) { r.Streams[0].To = "12" }, nil},
		"a missing event after the last one":          {also(delivers(added, modified), func(r *recorder) { r.Streams[0].To = "" }), nil},
		"no event":                                    {another(history.Stream{From: "10"}), nil},
		"requests that are recorded in any order":     {func(r *recorder) { slices.Reverse(r.Requests) }, nil},
		"a stalled watch":                             {func(r *recorder) { r.Streams[0].Stalled = true }, only(reads.WatchComplete)},
		"an event twice":                              {delivers(added, modified, modified, deleted), only(reads.WatchOnce)},
		"an event too early":                          {delivers(modified, added, deleted), only(reads.WatchOrder)},
		"an event of an earlier version":              {func(r *recorder) { r.Streams[0].From = "11" }, only(reads.WatchOrder)},
		"a bookmark":                                  {delivers(added, bookmark("11", false), modified, deleted, end), nil},
		"a bookmark twice":                            {delivers(added, modified, deleted, end, end), nil},
		"a bookmark too early":                        {delivers(added, bookmark("12", false), modified, deleted), only(reads.WatchOrder)},
		"a bookmark too late":                         {delivers(added, modified, bookmark("11", false), deleted), only(reads.WatchBookmarks)},
		"events after the bookmark that ends them":    {delivers(end, added, modified, deleted), only(reads.WatchOrder, reads.WatchOrder, reads.WatchOrder)},
		"the wrong type":                              {delivers(added, event(history.Added, "12", "2"), deleted), only(reads.WatchComplete)},
		"an event with another state":                 {delivers(added, event(history.Modified, "12", "3"), deleted), only(history.SameVersion)},
		"a DELETED of an earlier state":               {delivers(added, modified, event(history.Deleted, "13", "1")), only(reads.WatchDeleted)},
		"a DELETED of another object":                 {delivers(added, modified, func() history.Event { e := deleted; e.Object.UID = "v"; return e }()), only(reads.WatchDeleted)},
		"a DELETED of another state in another watch": {another(history.Stream{From: "12"}, event(history.Deleted, "13", "1")), only(reads.WatchDeleted)},
		"a DELETED of a version that exists":          {another(history.Stream{From: "11"}, event(history.Deleted, "12", "1")), only(history.SameVersion, removals.StaysGone, reads.WatchComplete)},

		"a missing end of what a cache lacks": {also(delivers(added, modified), last(func(get *history.Request) { get.Version = "0" })), nil},

		// How a watch begins and goes on.
		"a resumed watch":                          {another(history.Stream{From: "12", Resumed: true, To: "20"}, bookmark("12", false), deleted), nil},
		"an event again after resuming":            {func(r *recorder) { r.Streams[0].From, r.Streams[0].Resumed = "11", true }, only(reads.WatchResumed)},
		"an event missing after resuming":          {also(delivers(modified, deleted), func(r *recorder) { r.Streams[0].Resumed = true }), only(reads.WatchResumed)},
		"an event missing later after resuming":    {also(delivers(added, deleted), func(r *recorder) { r.Streams[0].Resumed = true }), only(reads.WatchComplete)},
		"an event too early after resuming":        {also(delivers(modified, added, deleted), func(r *recorder) { r.Streams[0].Resumed = true }), only(reads.WatchOrder)},
		"initial events":                           {initial(event(history.Added, "12", "2"), bookmark("12", true), deleted), nil},
		"initial events of a deleted object":       {initial(event(history.Added, "12", "2"), deleted, bookmark("13", true)), nil},
		"initial events of nothing":                {initial(bookmark("13", true)), nil},
		"initial events of what does not match":    {another(history.Stream{Label: "x", To: "20"}, bookmark("12", true)), nil},
		"initial events in another order":          {also(withB, delivers(added, ofB(event(history.Added, "14", "1"))), func(r *recorder) { r.Requests, r.Streams[0].To = r.Requests[:1], "14" }, initial(ofB(event(history.Added, "14", "1")), added, bookmark("14", true))), nil},
		"initial events that do not end":           {initial(event(history.Added, "12", "3")), only(history.SameVersion)},
		"initial events that stall":                {stalled(added), only(reads.WatchInitial)},
		"initial events that stall after To":       {stalled(event(history.Added, "12", "2"), deleted, bookmark("20", false)), only(reads.WatchInitial)},
		"events that stall after the initial ones": {stalled(event(history.Added, "12", "2"), bookmark("12", true), deleted), only(reads.WatchComplete)},
		"initial events that lack an object":       {initial(bookmark("12", true), deleted), only(reads.WatchInitial)},
		"initial events of an earlier state":       {initial(added, bookmark("12", true), deleted), only(reads.WatchInitial)},
		"initial events of what is gone":           {initial(event(history.Added, "12", "2"), bookmark("13", true)), only(removals.StaysGone, reads.WatchInitial)},
		"initial events before a missing event":    {initial(event(history.Added, "12", "2"), bookmark("12", true)), only(reads.WatchComplete)},
		"a watch that begins late":                 {also(delivers(deleted), func(r *recorder) { r.Streams[0].From = "11" }), only(reads.WatchComplete)},
		"a position that expired":                  {also(streams(history.Stream{From: "10", Events: events(added, modified)}, history.Stream{From: "15", To: "20", Missed: events(event(history.Deleted, "12", "2"))}), initial(bookmark("15", true))), nil},
		"a position that did not expire":           {also(streams(history.Stream{From: "10", Events: events(added, modified)}, history.Stream{From: "12", To: "20"}), initial(bookmark("15", true))), only(reads.WatchInitial, reads.WatchComplete)},
		"a position that expired before a change":  {streams(history.Stream{From: "10", Events: events(added)}, history.Stream{From: "12", To: "20"}), nil},
		"a position that expired after a change":   {streams(history.Stream{From: "10", Events: events(added)}, history.Stream{From: "11", To: "14", Events: events(deleted)}, history.Stream{From: "15", To: "20", Missed: events(ofB(modified))}), only(reads.WatchComplete)},
		"a position of a resumed watch":            {streams(history.Stream{From: "10", Events: events(added)}, history.Stream{From: "12", To: "20", Resumed: true}), only(reads.WatchComplete)},
		"a position of another watch":              {also(delivers(added), another(history.Stream{From: "15", To: "20"})), only(reads.WatchComplete, reads.WatchComplete)},

		// What a selector lets through.
		"no object that matches":                {byLabel(), nil},
		"an object that begins to match":        {also(labels("", "x"), byLabel(labeled(event(history.Added, "12", "2")), labeled(deleted))), nil},
		"an object that stops matching":         {also(labels("x", ""), byLabel(labeled(added), labeled(event(history.Deleted, "12", "1")))), nil},
		"an object that goes on matching":       {also(labels("x", "x"), byLabel(labeled(added), labeled(modified), labeled(deleted))), nil},
		"a beginning that is missing":           {also(labels("", "x"), byLabel(labeled(deleted))), only(reads.WatchSelector)},
		"an end that is missing":                {also(labels("x", ""), byLabel(labeled(added))), only(reads.WatchSelector)},
		"a change that is missing":              {also(labels("x", "x"), byLabel(labeled(added), labeled(deleted))), only(reads.WatchComplete)},
		"a beginning that is no ADDED":          {also(labels("", "x"), byLabel(labeled(modified), labeled(deleted))), only(reads.WatchSelector)},
		"an event without the label":            {byLabel(added), only(reads.WatchSelector)},
		"an event without the label at To":      {another(history.Stream{Label: "x", From: "10", To: "11"}, added), only(reads.WatchSelector)},
		"an event with another state, by label": {also(labels("", "x"), byLabel(labeled(event(history.Added, "12", "3")), labeled(deleted))), only(history.SameVersion)},
		"an end that only a selector shows":     {also(delivers(added, modified), func(r *recorder) { r.Streams[0].To = "" }, byLabel()), nil},

		// The order of several watches.
		"another order":                       {another(history.Stream{From: "10"}, modified, added, deleted), only(reads.WatchSameOrder, reads.WatchOrder)},
		"another order of a resumed watch":    {also(streams(history.Stream{From: "10", Events: events(added)}, history.Stream{From: "11", To: "20", Resumed: true, Events: events(modified, deleted)}), another(history.Stream{From: "10"}, added, deleted, modified)), only(reads.WatchSameOrder, removals.StaysGone, reads.WatchOrder)},
		"another order after resuming":        {also(another(history.Stream{From: "10"}, added), another(history.Stream{From: "11", Resumed: true}, deleted, modified)), only(reads.WatchSameOrder, removals.StaysGone, reads.WatchOrder)},
		"another order by label":              {also(labels("x", "x"), byLabel(labeled(modified), labeled(added), labeled(deleted))), only(reads.WatchOrder)},
		"the same event twice":                {another(history.Stream{From: "10"}, added, added, modified, deleted), only(reads.WatchOnce)},
		"an event that the first watch lacks": {also(delivers(added, modified), func(r *recorder) { r.Streams[0].To = "" }, another(history.Stream{From: "10"}, added, modified, deleted)), nil},

		// A list is one state.
		"a list":                               {listed("11", first), nil},
		"a list of nothing":                    {listed("13"), nil},
		"a list that lacks an object":          {listed("11"), only(reads.ListSnapshot)},
		"a list with an earlier state":         {listed("12", first), only(reads.ListSnapshot)},
		"a list with what is gone":             {listed("13", second), only(removals.StaysGone, reads.ListSnapshot)},
		"a list with another state":            {listed("11", object("11", "9")), only(history.SameVersion, reads.ListSnapshot)},
		"a list by label":                      {also(labels("", "x"), listedByLabel("12", withLabel(second))), nil},
		"a list by label of nothing":           {listedByLabel("12"), nil},
		"a list by label without a match":      {also(labels("", "x"), listedByLabel("12")), only(reads.ListSnapshot)},
		"a list by label with what differs":    {listedByLabel("11", first), only(reads.ListSnapshot)},
		"pages of two moments":                 {also(listed("13"), last(func(list *history.Request) { list.Listing.Versions = []string{"13", "14"} })), only(reads.ListSnapshot)},
		"a response that is no list":           {also(listed("13"), last(func(list *history.Request) { list.Listing.Versions = nil })), nil},
		"a deletecollection that shows a list": {func(r *recorder) { r.listed(deletes, "9") }, nil},

		"a list of what has a label": {also(labels("x", "x"), listed("11", withLabel(first))), nil},

		// A list is not too old.
		"a recent list":                           {recent("13", 8, 9), nil},
		"a list that is as old as a response":     {recent("12", 4, 5, second), nil},
		"a list that is older than a response":    {recent("10", 8, 9), only(reads.ListForward)},
		"a list that is older than a list":        {also(recent("14", 8, 9), recent("13", 10, 11)), only(reads.ListForward)},
		"a list while another is sent":            {recent("11", 0, 3, first), nil},
		"a list when another is answered":         {recent("11", 3, 5, first), nil},
		"a list after a response that is no list": {also(listed("13"), last(func(list *history.Request) { list.Listing.Versions = nil }), recent("13", 10, 11)), nil},
		"a list from a cache":                     {listed("11", first), nil},
		"a list that is older than required":      {also(listed("15"), last(func(list *history.Request) { list.Version = "20" })), only(reads.ListForward)},
		"a list that is as old as required":       {also(listed("13"), last(func(list *history.Request) { list.Version = "13" })), nil},
		"a list of exactly the version":           {also(listed("13"), last(func(list *history.Request) { list.Version, list.Match = "13", "Exact" })), nil},
		"a list of exactly another version":       {also(listed("14"), last(func(list *history.Request) { list.Version, list.Match = "13", "Exact" })), only(reads.ListForward)},
		"a list that is older than a dry-run shows": {func(r *recorder) {
			dryRun := model.Operation{Verb: model.Create, DryRun: true, Change: creates.Change}
			r.did(dryRun, shows(201, object("99", "1")))
			r.listed(lists, "20")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := life()
			test.change(r)
			var ids []string
			for _, property := range test.broken {
				ids = append(ids, property.ID)
			}
			NewWithT(t).Expect(broken(r.History)).To(ConsistOf(ids))
		})
	}
}

func only(properties ...*history.Property) []*history.Property { return properties }

// TestViolations checks what violations name besides the property.
func TestViolations(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*recorder)
		violation history.Violation
	}{
		"a list lacks an object":    {func(r *recorder) { r.listed(lists, "12").Version = "0" }, history.Violation{Name: "a", Request: 4, Stream: -1, Message: "a list at resourceVersion 12 lacks the object: uid u, resourceVersion 12, value 2"}},
		"a list has another object": {func(r *recorder) { r.listed(lists, "12", object("11", "1")).Version = "0" }, history.Violation{Name: "a", Request: 4, Stream: -1, Message: "a list at resourceVersion 12 shows uid u, resourceVersion 11, value 1; the object was uid u, resourceVersion 12, value 2"}},
		"a list has what is gone":   {func(r *recorder) { r.listed(lists, "13", object("12", "2")).Version = "0" }, history.Violation{Name: "a", Request: 4, Stream: -1, Message: "a list at resourceVersion 13 contains an object that did not exist or match then: uid u, resourceVersion 12, value 2"}},
		"a list has pages": {func(r *recorder) {
			r.listed(lists, "13").Version = "0"
			r.Requests[4].Listing.Versions = []string{"13", "14"}
		}, history.Violation{Request: 4, Stream: -1, Message: "the pages of one list have the resourceVersions 13 and 14"}},
		"initial events lack": {func(r *recorder) {
			r.Streams[0] = history.Stream{ID: "w", Events: []history.Event{bookmark("12", true)}}
		}, history.Violation{Name: "a", Request: -1, Message: "w: at the bookmark 12 after the initial events the object is no object, not uid u, resourceVersion 12, value 2"}},
		"initial events have": {func(r *recorder) {
			r.Streams[0] = history.Stream{ID: "w", Events: []history.Event{event(history.Added, "12", "2"), bookmark("10", true)}}
		}, history.Violation{Name: "a", Request: -1, Message: "w: at the bookmark 10 after the initial events the object is uid u, resourceVersion 12, value 2, not no object"}},
		"initial events do not end": {func(r *recorder) {
			r.Streams = append(r.Streams, history.Stream{ID: "w", To: "12", Stalled: true, Events: []history.Event{event(history.Added, "12", "2"), bookmark("12", false)}})
		}, history.Violation{Request: -1, Stream: 1, Message: "w: the initial events did not end: no bookmark with the annotation k8s.io/initial-events-end was delivered in time"}},
		"another stream lacks a change": {func(r *recorder) { r.Streams = append(r.Streams, history.Stream{ID: "w", From: "12", To: "20"}) }, history.Violation{Name: "a", Request: -1, Stream: 1, Message: "w: DELETED with resourceVersion 13 is missing (uid u, resourceVersion 12, value 2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := life()
			test.change(r)
			violations := slices.DeleteFunc(checks.Violations(&r.History), func(v history.Violation) bool { return v.Property == removals.StaysGone })
			NewWithT(t).Expect(violations).To(HaveLen(1))
			violations[0].Property, violations[0].Rule = nil, model.Rule{}
			NewWithT(t).Expect(violations[0]).To(Equal(test.violation))
		})
	}
}

func TestViolations_Order(t *testing.T) {
	h := historyOf(t, "ADDED a; ADDED b; MODIFIED a; MODIFIED b; MODIFIED a; MODIFIED b; OTHER 1")
	h.Streams[1].To = "9"
	var messages []string
	for _, violation := range checks.Violations(h) {
		messages = append(messages, violation.Message)
	}
	NewWithT(t).Expect(messages).To(HaveExactElements(
		ContainSubstring("resourceVersion 2 "), ContainSubstring("resourceVersion 3 "), ContainSubstring("resourceVersion 4 "),
		ContainSubstring("resourceVersion 5 "), ContainSubstring("resourceVersion 6 "), ContainSubstring("resourceVersion 7 "),
	))
}

func TestCheck_NotComparable(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{History: history.History{Names: []string{"a"}}}
	r.did(creates, shows(201, object("x7", "1")))
	r.did(gets, shows(200, object("x7", "1")))
	r.listed(lists, "", object("x7", "1"))
	g.Expect(r.Comparable()).To(BeFalse())
	g.Expect(broken(r.History)).To(BeEmpty())

	r.did(gets, shows(200, object("x8", "1")))
	g.Expect(broken(r.History)).To(Equal([]string{requests.Linearizable.ID}))
}

func TestProperties(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, property := range checks.Objects {
		g.Expect(seen).NotTo(HaveKey(property.ID))
		seen[property.ID] = true
		g.Expect(property.Rule.Text).To(MatchRegexp(`^[A-Z].*\.$`), property.ID)
		g.Expect(property.Rule.Source).NotTo(BeEmpty())
		g.Expect(property.Rule.Promise == "").To(Equal(property.Observed), fmt.Sprint(property.ID, " is promised or observed"))
	}
}
