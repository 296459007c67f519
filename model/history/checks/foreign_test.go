package checks_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
)

// operated makes a history one of objects that an operator also writes. The watch has shown what no response shows, and not all that others show: it
// has begun, and its initial events have not ended.
func operated(h *history.History) {
	h.Writers = []string{"operator"}
	h.Streams[0].From = ""
}

// TestForeign checks histories whose objects an operator also writes. Versions that no response shows are its own.
func TestForeign(t *testing.T) {
	expectEach(t, operated, []row{
		{"a finalizer is added", "create a : 201 version 11; MODIFIED a version 12 holds o/f; delete a : 200 terminating version 13; get a : 200 version 13", nil},
		{"a finalizer is added, and a response lacks it", "create a : 201 version 11; MODIFIED a version 12 holds o/f; patch a value 2 : 200 holds nothing version 13", requests.Linearizable},
		{"the last finalizer is removed", "create a : 201 version 11; MODIFIED a version 12 holds o/f; delete a : 200 terminating version 13; DELETED a version 14; get a : 404", nil},
		{"the last finalizer is removed after a change", "create a : 201 version 11; MODIFIED a version 12 holds o/f; delete a : 200 terminating version 13; patch a value 2 : 200 version 14; DELETED a version 15; patch a value 3 : 404", nil},
		{"one of two finalizers is removed", "create a holds f : 201 version 11; MODIFIED a version 12 holds f,o/f; delete a : 200 terminating version 13; MODIFIED a version 14 holds f; patch a holds nothing : 200 version 14; DELETED a version 15 holds f", nil},
		{"a finalizer is added to a terminating object", "create a holds f : 201 version 11; delete a : 200 terminating version 12; MODIFIED a version 13 holds f,o/f", requests.Linearizable},

		{"the status is written", "create a : 201 version 11; MODIFIED a version 12; get a : 200 version 12; patch a value 2 : 200 version 13", nil},
		{"the status is written, and the response comes before the event", "create a : 201 version 11; get a : 200 version 12; MODIFIED a version 12", nil},
		{"the status is written, and a patch changes nothing", "create a value 1 : 201 version 11; get a : 200 version 12; MODIFIED a version 12; patch a value 1 : 200 version 12; update a version 12 value 1 : 200 version 12", nil},
		{"the status is written, and a patch changes nothing later", "create a value 1 : 201 version 11; MODIFIED a version 12; patch a value 1 : 200 version 12", nil},
		{"a finalizer is removed, and a delete changes nothing", "create a holds f : 201 version 11; MODIFIED a version 12 holds f,o/f; delete a : 200 terminating version 13; delete a at 3 until 6 : 200 holds f version 14; MODIFIED a version 14 holds f at 7; get a : 200 version 14", nil},
		{"an object is created again, and a patch changes nothing", "create a : 201 version 11; delete a; DELETED a version 12; patch a holds nothing at 2 until 5 : 200 new uid v version 13; ADDED a uid v version 13 at 6; get a : 200 uid v version 13", nil},
		{"the status is written, and an update is stale", "create a : 201 version 11; MODIFIED a version 12; update a version 11 value 2 : 409", nil},
		{"the status is written, and a stale update succeeds", "create a : 201 version 11; MODIFIED a version 12; update a version 11 value 2 : 200 version 13", requests.Linearizable},
		{"the status is written, and a delete of the version before", "create a : 201 version 11; MODIFIED a version 12; delete a version 11", requests.Linearizable},
		{"the status is written, and a read of the version before", "create a : 201 version 11; MODIFIED a version 12; get a : 200 version 11", requests.Linearizable},
		{"the status is written before the read of another client", "create a : 201 version 11; get a at 1 until 5 : 200 version 11; get a at 2 until 4 : 200 version 12; MODIFIED a version 12 at 6", nil},
		{"an update undoes a default", "create a value 1 : 201 version 11; MODIFIED a version 12; update a value 1 : 200 version 13; MODIFIED a version 13; MODIFIED a version 14; get a : 200 version 14", nil},

		{"an object is removed", "create a : 201 version 11; DELETED a version 12; get a : 404", nil},
		{"an object is removed later than that is seen", "create a : 201 version 11; DELETED a version 12; get a : 200 version 11", requests.Linearizable},
		{"an object is removed, and a delete is sent", "create a : 201 version 11; delete a at 1 until 5; DELETED a version 12 at 3; get a at 6 : 404", nil},
		{"an object is removed, and a delete finds nothing", "create a : 201 version 11; delete a at 1 until 5 : 404; DELETED a version 12 at 3; get a at 6 : 404", nil},
		{"an object is removed, and two deletes succeed", "create a : 201 version 11; delete a at 1 until 5; delete a at 2 until 4; DELETED a version 12 at 3; get a at 6 : 404", requests.Linearizable},
		{"an object is removed that was held", "create a holds f : 201 version 11; DELETED a version 12; get a : 404", requests.Linearizable},
		{"an object is removed that another finalizer held", "create a holds f : 201 version 11; MODIFIED a version 12 holds f,o/f; delete a : 200 terminating version 13; patch a holds o/f : 200 version 14; DELETED a version 15; get a : 404", nil},
		{"an object is removed that was held just before", "create a : 201 version 11; patch a holds f : 200 version 12; DELETED a version 13; get a : 404", history.AtomicRemoval},
		{"an object is marked", "create a holds f : 201 version 11; MODIFIED a version 12 terminating; patch a holds nothing : 200 version 12; DELETED a version 13 holds f", nil},
		{"a deletion is undone", "create a holds f : 201 version 11; delete a : 200 terminating version 12; MODIFIED a version 13 undeleted", requests.Linearizable},
		{"the collector removes what an operator also writes", "create a : 201 version 11; MODIFIED a version 12; delete a Orphan : 200 orphan version 13; DELETED a version 14; get a : 404", nil},

		{"an object is created again", "create a value 1 : 201 version 11; delete a; DELETED a version 12; ADDED a uid v version 13 value 1; create a value 2 : 409; get a : 200 value 1 version 13", nil},
		{"an object is created again, and a create succeeds", "create a value 1 : 201 version 11; delete a; DELETED a version 12; ADDED a uid v version 13; get a : 200 uid v version 13; create a value 2 : 201 uid w version 14", requests.Linearizable},
		{"an object is created again with its uid", "create a value 1 : 201 version 11; delete a; DELETED a version 12; ADDED a version 13; get a : 200 version 13", requests.Linearizable},
		{"an object is created again, and a delete is sent twice", "create a : 201 version 11; delete a at 1 until 9; delete a at 2 until 8; DELETED a version 12 at 3; ADDED a uid v version 13 at 4; DELETED a version 14 at 5", nil},
		{"a dry-run is stored", "create a value 1 dry-run : 201; ADDED a version 11 value 1; get a : 200 version 11", requests.Linearizable},
		{"a dry-run of a patch is stored", "create a value 1 : 201 version 11; patch a value 2 dry-run : 200 version 11; MODIFIED a version 12 value 2; get a : 200 version 12", requests.Linearizable},

		// A request without a response may have led to what the operator seems to have written.
		{"a create was lost", "create a value 1 : lost; ADDED a version 11 value 1; MODIFIED a version 12; get a : 200 version 12", nil},
		{"a patch was lost", "create a : 201 version 11; patch a holds f : lost; MODIFIED a version 12 holds f; get a : 200 version 12", nil},
		{"a patch was lost, and an operator writes before it", "create a : 201 version 11; patch a holds f : lost; MODIFIED a version 12; get a : 200 version 12; MODIFIED a version 13 holds f", nil},
		{"a deletecollection marks", "create a holds o/f : 201 version 11; deletecollection : 200 11 a; MODIFIED a version 12 terminating; MODIFIED a version 13; get a : 200 version 13", nil},
		{"a deletecollection removes", "create a : 201 version 11; deletecollection : 200 11 a; DELETED a version 12; get a : 404", nil},
		{"a deletecollection selects what an operator has written", "create a : 201 version 11; MODIFIED a version 12; deletecollection : 200 12 a; get a : 404", nil},
		{"a list shows what an operator has written", "create a : 201 version 11; MODIFIED a version 12 holds o/f; list : 200 12 a", nil},
		{"a list of the beginning lacks what an operator has written", "create a : 201 version 11; MODIFIED a version 12 holds o/f; list from 12 : 200 12", reads.ListSnapshot},
	})
}

// TestForeign_NoWriter checks that without another client every version is one of the run.
func TestForeign_NoWriter(t *testing.T) {
	expectEach(t, func(h *history.History) { h.Streams[0].From = "" }, []row{
		{"an object is removed", "create a : 201 version 11; DELETED a version 12; get a : 404", requests.Linearizable},
		{"the status is written", "create a : 201 version 11; MODIFIED a version 12; get a : 200 version 12", requests.Linearizable},
		{"an object is created", "create a value 1 : 201 version 11; delete a; DELETED a version 12; ADDED a uid v version 13; get a : 200 version 13", requests.Linearizable},
	})
}

// TestForeign_Undecided checks histories of which it is not known whether the server or the operator has done something.
func TestForeign_Undecided(t *testing.T) {
	for name, test := range map[string]struct {
		clauses, reason string
		change          func(*history.History)
	}{
		"the run's finalizer":       {"create a holds f : 201 version 11; delete a : 200 terminating version 12; DELETED a version 13; get a : 404", "may have removed", operated},
		"the run's annotation":      {"create a value 1 : 201 version 11; MODIFIED a version 12 new; get a : 200 version 12", "may have removed", operated},
		"an object without labels":  {"create a : 201 version 11; delete a; DELETED a version 12; ADDED a uid v version 13 stray; create a : 409; get a : 200 uid v version 13", "without the labels", operated},
		"a watch that lost changes": {"create a : 201 version 11; EXPIRED 20 a; get a : 404", "lost its position", operated},
		"a watch that stalled":      {"create a : 201 version 11; get a : 404", "not delivered", func(h *history.History) { operated(h); h.Streams[0].Stalled = true }},
		"no watch":                  {"create a : 201 version 11; get a : 404", "not delivered", func(h *history.History) { operated(h); h.Streams = nil }},
		"versions without an order": {"create a : 201 version x; get a : 404", "not numeric", operated},
	} {
		t.Run(name, func(t *testing.T) {
			g, h := NewWithT(t), historyOf(t, test.clauses)
			test.change(h)
			var undecided []history.Violation
			for _, violation := range checks.Violations(h) {
				if violation.Undecided {
					undecided = append(undecided, violation)
				}
			}
			g.Expect(undecided).To(HaveLen(1))
			g.Expect(undecided[0].Property).To(Equal(requests.Linearizable))
			g.Expect(undecided[0].Message).To(And(HavePrefix("operator also writes these objects: "), ContainSubstring(test.reason)))
		})
	}
}

// TestForeign_Ends checks whether the end of an object must have been shown that an operator creates again.
func TestForeign_Ends(t *testing.T) {
	for name, test := range map[string]struct {
		at     time.Duration
		broken []string
	}{
		"created again before a get finds nothing": {5, []string{reads.WatchComplete.ID}},
		"created again after the last get":         {9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := life()
			r.Writers = []string{"operator"}
			for i := range r.Streams[0].Events {
				r.Streams[0].Events[i].At = r.Requests[i].Return
			}
			again := event(history.Added, "14", "")
			again.Object.UID, again.At = "v", test.at
			r.Streams[0].Events = slices.Insert(r.Streams[0].Events, 3, again)
			NewWithT(t).Expect(broken(r.History)).To(ConsistOf(test.broken))
		})
	}
}
