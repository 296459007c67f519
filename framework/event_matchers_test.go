package framework

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// stored returns a ConfigMap as a server would store it, with its name as uid.
func stored(name string, options ...ObjectOption) *Object {
	object := &Object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName(name)
	object.SetUID(apitypes.UID(name))
	for _, option := range options {
		option(object)
	}
	return object
}

// dying marks an object as terminating.
func dying(object *Object) {
	object.SetDeletionTimestamp(new(metav1.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)))
}

func added(object *Object) journal.Event { return journal.Event{Type: watch.Added, Object: object} }
func modified(object *Object) journal.Event {
	return journal.Event{Type: watch.Modified, Object: object}
}
func deleted(object *Object) journal.Event { return journal.Event{Type: watch.Deleted, Object: object} }

// historyOf returns a history of these subjects with the events, a millisecond apart.
func historyOf(subjects []*Object, events ...journal.Event) *History {
	journal := &journal.Journal{}
	for i, event := range events {
		event.At = time.UnixMilli(int64(i))
		journal.Add(event)
	}
	return &History{journal: journal, subjects: subjects}
}

var (
	owner     = stored("owner")
	ownerDies = stored("owner", dying, Held)
	ownerFree = stored("owner", dying)
	child     = stored("child")
	childDies = stored("child", dying)
	other     = stored("other")
	all       = []*Object{owner, child, other}
)

func TestHaveObserved(t *testing.T) {
	held := Matching(owner, HaveFinalizers(Hold))
	free := Matching(owner, And(BeTerminating(), HaveFinalizers()))
	for _, test := range []struct {
		name     string
		events   []journal.Event
		want     []EventMatcher
		observed bool
		// broken is the part of the message about the order; empty when waiting may still succeed.
		broken string
	}{
		{name: "nothing is expected and nothing happened", observed: true},
		{name: "nothing happened yet", want: []EventMatcher{Deleted(owner)}},
		{
			name:   "what was expected happened",
			events: []journal.Event{added(owner), deleted(owner)}, want: []EventMatcher{Deleted(owner)}, observed: true,
		},
		{
			name:   "all want of one object, with others in between",
			events: []journal.Event{added(owner), added(child), modified(ownerDies), modified(childDies), deleted(owner)},
			want:   []EventMatcher{Added(owner), Terminating(owner), Deleted(owner)}, observed: true,
		},
		{
			name:   "the same happened to somebody else",
			events: []journal.Event{deleted(other)}, want: []EventMatcher{Deleted(owner)},
		},
		{
			name:   "in order",
			events: []journal.Event{deleted(child), deleted(owner)}, want: []EventMatcher{Deleted(child), Deleted(owner)}, observed: true,
		},
		{
			name:   "the first is there, the second may still come",
			events: []journal.Event{deleted(child)}, want: []EventMatcher{Deleted(child), Deleted(owner)},
		},
		{
			name:   "in the wrong order",
			events: []journal.Event{deleted(owner), deleted(child)}, want: []EventMatcher{Deleted(child), Deleted(owner)},
			broken: `ConfigMap "owner" was deleted, but not after ConfigMap "child" was deleted`,
		},
		{
			name:   "the second without the first: too late for the first",
			events: []journal.Event{deleted(owner)}, want: []EventMatcher{Deleted(child), Deleted(owner)},
			broken: `ConfigMap "owner" was deleted, but before that ConfigMap "child" was not deleted`,
		},
		{
			name:   "the first occurrence counts, not a later one",
			events: []journal.Event{modified(ownerDies), deleted(child), modified(ownerFree)}, want: []EventMatcher{Deleted(child), Terminating(owner)},
			broken: `ConfigMap "owner" was terminating, but not after ConfigMap "child" was deleted`,
		},
		{
			name:   "one event cannot be two want, one after the other",
			events: []journal.Event{modified(ownerDies)}, want: []EventMatcher{Terminating(owner), held},
			broken: ", but not after ",
		},
		{
			name:   "states, in order",
			events: []journal.Event{modified(ownerDies), modified(ownerFree), deleted(ownerFree)},
			want:   []EventMatcher{held, free, Deleted(owner)}, observed: true,
		},
		{
			name:   "an object's last state is not one in which it was terminating",
			events: []journal.Event{added(owner), deleted(ownerDies)}, want: []EventMatcher{Terminating(owner)},
		},
		{
			name:   "each, in whatever order",
			events: []journal.Event{deleted(child), deleted(other)}, want: []EventMatcher{Each(Deleted, other, child)}, observed: true,
		},
		{
			name:   "each is not some",
			events: []journal.Event{deleted(child)}, want: []EventMatcher{Each(Deleted, other, child)},
		},
		{
			name:   "each after something",
			events: []journal.Event{deleted(owner), deleted(other), deleted(child)},
			want:   []EventMatcher{Deleted(owner), Each(Deleted, child, other)}, observed: true,
		},
		{
			name:   "one of each came too early, before the other did",
			events: []journal.Event{deleted(other)}, want: []EventMatcher{Deleted(owner), Each(Deleted, child, other)},
			broken: `ConfigMap "child" was deleted and ConfigMap "other" was deleted, but before that ConfigMap "owner" was not deleted`,
		},
		{
			name:   "something came before the last of each",
			events: []journal.Event{deleted(other), deleted(owner), deleted(child)},
			want:   []EventMatcher{Each(Deleted, child, other), Deleted(owner)},
			broken: `ConfigMap "owner" was deleted, but not after ConfigMap "child" was deleted and ConfigMap "other" was deleted`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			history := historyOf(all, test.events...)
			matcher := HaveObserved(test.want...)

			observed, err := matcher.Match(history)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(observed).To(Equal(test.observed))
			mayChange := matcher.(interface{ MatchMayChangeInTheFuture(any) bool }).MatchMayChangeInTheFuture(history)
			g.Expect(mayChange).To(Equal(test.broken == ""), "Eventually must give up where the order is broken, and only there")
			g.Expect(matcher.FailureMessage(history)).To(ContainSubstring(test.broken))
		})
	}
}

func TestHaveObserved_Reused(t *testing.T) {
	g := NewWithT(t)
	history := historyOf(all)
	matcher := HaveObserved(Deleted(child), Deleted(owner))

	g.Expect(history).NotTo(matcher)
	history.journal.Add(deleted(child))
	g.Expect(history).NotTo(matcher)
	history.journal.Add(deleted(owner))
	g.Expect(history).To(matcher)
}

func TestHaveObserved_DifferentKinds(t *testing.T) {
	g := NewWithT(t)
	secret := stored("secret", func(object *Object) { object.SetKind("Secret") })
	history := historyOf([]*Object{owner, secret}, deleted(owner), deleted(secret))

	_, err := HaveObserved(Deleted(owner), Deleted(secret)).Match(history)
	g.Expect(err).To(MatchError(ContainSubstring("events of a ConfigMap and of a Secret have no certain order")))

	g.Expect(history).To(HaveObserved(Each(Deleted, secret, owner)), "which says nothing of the order")
	g.Expect(history).To(And(HaveObserved(Deleted(owner)), HaveObserved(Deleted(secret))))
}

func TestHaveObserved_EventuallyWrongOrder(t *testing.T) {
	started := time.Now()
	history := historyOf(all, deleted(owner))
	var said string
	patient := NewGomega(func(message string, _ ...int) { said = message })

	patient.Eventually(history).WithTimeout(time.Minute).Should(HaveObserved(Deleted(child), Deleted(owner)))

	g := NewWithT(t)
	g.Expect(time.Since(started)).To(BeNumerically("<", 10*time.Second))
	g.Expect(said).To(ContainSubstring("but before that"))
}

func TestHaveObserved_Message(t *testing.T) {
	history := historyOf(all, added(owner), added(stored("child", OwnedBy(owner, Blocking))), modified(ownerDies))
	matcher := HaveObserved(Terminating(owner), Deleted(child), Deleted(owner))
	_, _ = matcher.Match(history)

	want := `ConfigMap "child" was not deleted.
Expected events, in this order:
  ConfigMap "owner" terminating
  ConfigMap "child" deleted
  ConfigMap "owner" deleted
Observed events:
        0s  ADDED    ConfigMap "owner"
       1ms  ADDED    ConfigMap "child"; owned by ConfigMap "owner" (blocking)
       2ms  MODIFIED ConfigMap "owner"; deletionTimestamp 07:08:09; finalizers ` + Hold + `
ConfigMap "owner" still exists: terminating; held by this test's own finalizer (` + Hold + `)
ConfigMap "child" still exists: no deletionTimestamp; its owner ConfigMap "owner" (blocking) is terminating`
	NewWithT(t).Expect(matcher.FailureMessage(history)).To(Equal(want))
}

func TestHaveObserved_NegatedMessage(t *testing.T) {
	g := NewWithT(t)
	matcher := HaveObserved(Terminating(owner))
	message := matcher.NegatedFailureMessage(historyOf(all, modified(ownerDies)))
	g.Expect(message).To(HavePrefix("These events must not occur:\n  ConfigMap \"owner\" terminating\nObserved events:\n"))
	g.Expect(message).To(ContainSubstring("MODIFIED"))
	g.Expect(matcher.NegatedFailureMessage(historyOf(all))).To(HaveSuffix("Observed events:\n  none"))
}

func TestHaveObserved_InvalidActual(t *testing.T) {
	g := NewWithT(t)
	_, err := HaveObserved().Match("a text")
	g.Expect(err).To(MatchError("HaveObserved matches a *History, not string"))

	gap := historyOf(all, deleted(owner))
	gap.journal.Fail(fmt.Errorf("the watch on configmaps was lost"))
	gap.journal.Fail(fmt.Errorf("a later consequence"))
	_, err = HaveObserved(Deleted(owner)).Match(gap)
	g.Expect(err).To(MatchError("the watch on configmaps was lost"))
	g.Expect(HaveObserved(Deleted(owner)).FailureMessage(gap)).To(ContainSubstring("the watch on configmaps was lost"))
}

// shouting is a matcher with its own description.
type shouting struct{ types.GomegaMatcher }

func (shouting) String() string { return "SHOUT" }

func TestMatcherNames(t *testing.T) {
	for _, test := range []struct {
		matcher types.GomegaMatcher
		want    string
	}{
		{BeTerminating(), "be terminating"},
		{Not(BeTerminating()), "not be terminating"},
		{And(BeTerminating(), HaveGracePeriod(0)), "be terminating and have deletionGracePeriodSeconds 0"},
		{And(Not(BeTerminating()), BeOwnedBy(owner)), `not be terminating and be owned by ConfigMap "owner" only`},
		{shouting{}, "SHOUT"},
	} {
		if got := describe.Matcher(test.matcher); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
	if got := describe.Matcher(HaveLen(3)); !strings.Contains(got, "3") {
		t.Errorf("a matcher of Gomega's own is observed with what it expects, got %q", got)
	}
}

func TestMatching_Name(t *testing.T) {
	message := HaveObserved(Matching(owner, And(BeTerminating(), HaveGracePeriod(5)))).FailureMessage(historyOf(all))
	NewWithT(t).Expect(message).To(ContainSubstring(`ConfigMap "owner" observed to be terminating and have deletionGracePeriodSeconds 5`))
}
