package checks_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/removals"
)

// TestStaysGone checks what may be seen of an object after it was removed.
func TestStaysGone(t *testing.T) {
	for rule, test := range map[string]struct {
		clauses string
		again   bool
	}{
		// What shows that an object is removed: DELETED, a response to the removal, and a read that does not find it.
		"a get after DELETED":                        {"ADDED a; DELETED a; get a : 200 version 2", true},
		"a get before DELETED":                       {"ADDED a; get a : 200 version 2; DELETED a", false},
		"a get that was sent before DELETED":         {"ADDED a; get a at 1 until 9 : 200 version 2; DELETED a at 5", false},
		"a patch after DELETED":                      {"ADDED a; DELETED a; patch a value 1 : 200 version 4", true},
		"a dry-run of a patch after DELETED":         {"ADDED a; DELETED a; patch a value 1 dry-run : 200 version 2", true},
		"a list after DELETED":                       {"ADDED a; DELETED a; list : 200 3 a", true},
		"a get after the delete has shown it":        {"create a : 201 version 2; delete a : 200 version 2; get a : 200 version 2", true},
		"a get after its last finalizer went":        {"create a holds f : 201 version 2; delete a : 200 terminating version 3; patch a holds nothing : 200 version 3; get a : 200 holds f version 3", true},
		"a get while finalizers hold it":             {"create a holds f : 201 version 2; delete a : 200 terminating version 3; get a : 200 version 3", false},
		"a get after a delete that is a dry-run":     {"create a : 201 version 2; delete a dry-run : 200 version 2; get a : 200 version 2", false},
		"a get after a refused delete":               {"create a : 201 version 2; delete a : 409; get a : 200 version 2", false},
		"a get after 404":                            {"create a : 201 version 2; get a : 404; get a : 200 version 2", true},
		"a get after another uid":                    {"create a : 201 version 2; get a : 200 uid v version 4; get a : 200 uid a version 2", true},
		"a get after a 404 from a cache":             {"create a : 201 version 2; get a from 0 : 404; get a : 200 version 2", false},
		"a get after a 404 at the time of a create":  {"create a at 1 until 4 : 201 version 2; get a at 2 until 3 : 404; get a at 5 : 200 version 2", false},
		"a get after a list without it":              {"create a : 201 version 2; list : 200 5; get a : 200 version 2", true},
		"a get after a list by label":                {"create a : 201 version 2; list label x : 200 5; get a : 200 version 2", false},
		"a get after a list that is older":           {"create a : 201 version 8; list : 200 5; get a : 200 version 8", false},
		"a get after a list from a cache":            {"create a : 201 version 2; list from 0 : 200 5; get a : 200 version 2", false},
		"a get after a list that showed the removal": {"ADDED a; EXPIRED 9; list : 200 9; get a : 200 version 2", true},
		"an object of the same name":                 {"ADDED a; DELETED a; create a : 201 uid v version 5; get a : 200 uid v version 5", false},

		// Reads that may be old, and those that may not.
		"a get from a cache":                {"ADDED a; DELETED a; get a from 0 : 200 version 2", false},
		"a get not older than the removal":  {"ADDED a; DELETED a; get a from 3 : 200 version 2", true},
		"a get not older than before":       {"ADDED a; DELETED a; get a from 2 : 200 version 2", false},
		"a list from a cache":               {"ADDED a; DELETED a; list from 0 : 200 2 a", false},
		"a list from a cache, of later":     {"ADDED a; DELETED a; list from 0 : 200 3 a", true},
		"a list not older than the removal": {"ADDED a; DELETED a; list from 3 : 200 3 a", true},
		"a list of exactly before":          {"ADDED a; DELETED a; list from 2 : 200 2 a", false},

		// Watches.
		"MODIFIED after DELETED":                        {"ADDED a; DELETED a; MODIFIED a", true},
		"MODIFIED after DELETED without an order":       {"ADDED a version x1; DELETED a version x2; MODIFIED a version x3", true},
		"ADDED after DELETED of another uid":            {"ADDED a; DELETED a; ADDED a uid v", false},
		"MODIFIED after resuming":                       {"ADDED a; DELETED a; RESUMED 3; MODIFIED a", true},
		"MODIFIED in a watch from before":               {"ADDED a version 2; MODIFIED a version 3; DELETED a version 4; OTHER 2; MODIFIED a version 3; DELETED a version 4", false},
		"MODIFIED in a watch from later":                {"ADDED a version 2; DELETED a version 4; OTHER 5; MODIFIED a version 6", true},
		"MODIFIED of later in a watch from before":      {"ADDED a version 2; DELETED a version 4; OTHER 2; MODIFIED a version 6", true},
		"initial events of before":                      {"ADDED a version 2; DELETED a version 4; INITIAL; ADDED a version 2; BOOKMARK 3 ends; DELETED a version 4", false},
		"initial events that end with the removal":      {"ADDED a version 2; DELETED a version 4; INITIAL; ADDED a version 2; DELETED a version 4; BOOKMARK 5 ends", false},
		"initial events of later":                       {"ADDED a version 2; DELETED a version 4; INITIAL; ADDED a version 2; BOOKMARK 5 ends", true},
		"initial events of another uid":                 {"ADDED a version 2; DELETED a version 4; INITIAL; ADDED a uid v version 5; BOOKMARK 6 ends", false},
		"MODIFIED after initial events":                 {"ADDED a version 2; DELETED a version 4; INITIAL; BOOKMARK 5 ends; MODIFIED a version 6", true},
		"initial events that have not ended":            {"ADDED a version 2; DELETED a version 4; INITIAL; ADDED a version 2", false},
		"an object that another client relabeled":       {"ADDED a; DELETED a; get a : 200 stray version 4", false},
		"an object whose selector another client undid": {"ADDED a; DELETED a; MODIFIED a stray", false},

		// Earlier rounds.
		"a get in a later round":                          {"removed old 2; get a : 200 uid old version 1", true},
		"a get in a later round, without an order":        {"removed old x; get a : 200 uid old version y", true},
		"a get from a cache in a later round":             {"removed old 2; get a from 0 : 200 uid old version 1", false},
		"a list in a later round":                         {"removed old 2; get a : 404; list : 200 9 old", true},
		"a list from a cache in a later round":            {"removed old 5; list from 0 : 200 4 old", false},
		"ADDED in a later round":                          {"removed old 2; OTHER 9; ADDED old version 10", true},
		"a watch of a later round that begins before":     {"removed old 5; OTHER 3; MODIFIED old version 4", false},
		"initial events in a later round":                 {"removed old 2; INITIAL; ADDED old version 1; BOOKMARK 9 ends", true},
		"initial events in a later round, with its end":   {"removed old 5; INITIAL; ADDED old version 1; DELETED old version 5; BOOKMARK 9 ends", false},
		"initial events in a later round, of before":      {"removed old 5; INITIAL; ADDED old version 1; BOOKMARK 4 ends", false},
		"another object in a later round":                 {"removed old 2; get a : 200 version 9", false},
		"what was removed and is not shown in this round": {"removed old 2; ADDED a; DELETED a", false},
	} {
		t.Run(rule, func(t *testing.T) {
			again := false
			for _, violation := range checks.Violations(historyOf(t, test.clauses)) {
				again = again || violation.Property == removals.StaysGone
			}
			NewWithT(t).Expect(again).To(Equal(test.again))
		})
	}
}

func TestStaysGone_Pods(t *testing.T) {
	h := historyOf(t, "ADDED a grace 30; delete a grace 20 : 200 terminating version 2; get a : 200 version 2")
	h.Graceful = true
	for _, violation := range checks.Violations(h) {
		NewWithT(t).Expect(violation.Property).NotTo(Equal(removals.StaysGone), "a pod stays for its grace period")
	}
}

func TestRemovals(t *testing.T) {
	g := NewWithT(t)
	removed := removals.Known{}
	removed.Enter(historyOf(t, "ADDED a; ADDED b; ADDED c; DELETED a; get b : 404"))
	g.Expect(removed).To(Equal(removals.Known{"a": "5", "b": ""}))

	later := historyOf(t, "get d : 200 uid a version 2; ADDED e; DELETED e")
	later.Requests = append(later.Requests, history.Request{Call: time.Hour, Return: time.Hour, Operation: model.Operation{Verb: model.Select},
		Listing: &history.Listing{Versions: []string{"9"}, Objects: map[string]model.Object{"f": {UID: "b", ResourceVersion: "3"}}}})
	removed.Enter(later)
	g.Expect(later.Removed).To(Equal(map[string]string{"a": "5", "b": ""}), "only what the round shows")
	g.Expect(removed).To(Equal(removals.Known{"a": "5", "b": "", "e": "3"}))

	again := checks.Violations(later)
	g.Expect(again).To(ContainElement(And(HaveField("Property", removals.StaysGone), HaveField("Request", 0), HaveField("Name", "d"),
		HaveField("Message", "the response to get of client 1 shows an object that was removed, as an earlier round has shown: uid a, resourceVersion 2"))))
	g.Expect(again).To(ContainElement(And(HaveField("Property", removals.StaysGone), HaveField("Request", 1), HaveField("Name", "f"),
		HaveField("Message", "the list after the round shows an object that was removed, as an earlier round has shown: uid b, resourceVersion 3"))))
}
