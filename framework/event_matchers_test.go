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
)

// stored is a ConfigMap as a server would have stored it, its uid its name.
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

func added(object *Object) Event    { return Event{Type: watch.Added, Object: object} }
func modified(object *Object) Event { return Event{Type: watch.Modified, Object: object} }
func deleted(object *Object) Event  { return Event{Type: watch.Deleted, Object: object} }

// historyOf is a history of these subjects in which the events happened, a millisecond apart.
func historyOf(subjects []*Object, events ...Event) *History {
	journal := &journal{}
	for i, event := range events {
		event.At = time.UnixMilli(int64(i))
		journal.add(event)
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

func TestShow(t *testing.T) {
	held := Seen(owner, HaveFinalizers(Hold))
	free := Seen(owner, And(BeTerminating(), HaveFinalizers()))
	for _, test := range []struct {
		name    string
		events  []Event
		moments []Moment
		shown   bool
		// broken is what the message says of the order; empty when waiting may still help.
		broken string
	}{
		{name: "nothing is expected and nothing happened", shown: true},
		{name: "nothing happened yet", moments: []Moment{Deleted(owner)}},
		{
			name:   "what was expected happened",
			events: []Event{added(owner), deleted(owner)}, moments: []Moment{Deleted(owner)}, shown: true,
		},
		{
			name:    "all moments of one object, with others in between",
			events:  []Event{added(owner), added(child), modified(ownerDies), modified(childDies), deleted(owner)},
			moments: []Moment{Added(owner), Terminating(owner), Deleted(owner)}, shown: true,
		},
		{
			name:   "the same happened to somebody else",
			events: []Event{deleted(other)}, moments: []Moment{Deleted(owner)},
		},
		{
			name:   "in order",
			events: []Event{deleted(child), deleted(owner)}, moments: []Moment{Deleted(child), Deleted(owner)}, shown: true,
		},
		{
			name:   "the first is there, the second may still come",
			events: []Event{deleted(child)}, moments: []Moment{Deleted(child), Deleted(owner)},
		},
		{
			name:   "in the wrong order",
			events: []Event{deleted(owner), deleted(child)}, moments: []Moment{Deleted(child), Deleted(owner)},
			broken: `ConfigMap "owner" deleted did not come after ConfigMap "child" deleted`,
		},
		{
			name:   "the second without the first: too late for the first",
			events: []Event{deleted(owner)}, moments: []Moment{Deleted(child), Deleted(owner)},
			broken: `ConfigMap "owner" deleted did not come after ConfigMap "child" deleted`,
		},
		{
			name:   "the first occurrence counts, not a later one",
			events: []Event{modified(ownerDies), deleted(child), modified(ownerFree)}, moments: []Moment{Deleted(child), Terminating(owner)},
			broken: `ConfigMap "owner" terminating did not come after ConfigMap "child" deleted`,
		},
		{
			name:   "one event cannot be two moments, one after the other",
			events: []Event{modified(ownerDies)}, moments: []Moment{Terminating(owner), held},
			broken: "did not come after",
		},
		{
			name:    "states, in order",
			events:  []Event{modified(ownerDies), modified(ownerFree), deleted(ownerFree)},
			moments: []Moment{held, free, Deleted(owner)}, shown: true,
		},
		{
			name:   "an object's last state is not one in which it was terminating",
			events: []Event{added(owner), deleted(ownerDies)}, moments: []Moment{Terminating(owner)},
		},
		{
			name:   "each, in whatever order",
			events: []Event{deleted(child), deleted(other)}, moments: []Moment{Each(Deleted, other, child)}, shown: true,
		},
		{
			name:   "each is not some",
			events: []Event{deleted(child)}, moments: []Moment{Each(Deleted, other, child)},
		},
		{
			name:    "each after something",
			events:  []Event{deleted(owner), deleted(other), deleted(child)},
			moments: []Moment{Deleted(owner), Each(Deleted, child, other)}, shown: true,
		},
		{
			name:   "one of each came too early, before the other did",
			events: []Event{deleted(other)}, moments: []Moment{Deleted(owner), Each(Deleted, child, other)},
			broken: `in any order: ConfigMap "child" deleted, ConfigMap "other" deleted did not come after ConfigMap "owner" deleted`,
		},
		{
			name:    "something came before the last of each",
			events:  []Event{deleted(other), deleted(owner), deleted(child)},
			moments: []Moment{Each(Deleted, child, other), Deleted(owner)},
			broken:  `ConfigMap "owner" deleted did not come after in any order`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			history := historyOf(all, test.events...)
			matcher := Show(test.moments...)

			shown, err := matcher.Match(history)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shown).To(Equal(test.shown))
			mayChange := matcher.(interface{ MatchMayChangeInTheFuture(any) bool }).MatchMayChangeInTheFuture(history)
			g.Expect(mayChange).To(Equal(test.broken == ""), "Eventually must give up where the order is broken, and only there")
			g.Expect(matcher.FailureMessage(history)).To(ContainSubstring(test.broken))
		})
	}
}

func TestShowJudgesAnewEachTime(t *testing.T) {
	g := NewWithT(t)
	history := historyOf(all)
	matcher := Show(Deleted(child), Deleted(owner))

	g.Expect(history).NotTo(matcher)
	history.journal.add(deleted(child))
	g.Expect(history).NotTo(matcher)
	history.journal.add(deleted(owner))
	g.Expect(history).To(matcher)
}

func TestShowRefusesToOrderDifferentKinds(t *testing.T) {
	g := NewWithT(t)
	secret := stored("secret", func(object *Object) { object.SetKind("Secret") })
	history := historyOf([]*Object{owner, secret}, deleted(owner), deleted(secret))

	_, err := Show(Deleted(owner), Deleted(secret)).Match(history)
	g.Expect(err).To(MatchError(ContainSubstring("the order of what happens to a ConfigMap and to a Secret is not certain")))

	g.Expect(history).To(Show(Each(Deleted, secret, owner)), "which says nothing of the order")
	g.Expect(history).To(And(Show(Deleted(owner)), Show(Deleted(secret))))
}

func TestShowGivesUpUnderEventuallyWhenTheOrderIsBroken(t *testing.T) {
	started := time.Now()
	history := historyOf(all, deleted(owner))
	var said string
	patient := NewGomega(func(message string, _ ...int) { said = message })

	patient.Eventually(history).WithTimeout(time.Minute).Should(Show(Deleted(child), Deleted(owner)))

	g := NewWithT(t)
	g.Expect(time.Since(started)).To(BeNumerically("<", 10*time.Second))
	g.Expect(said).To(ContainSubstring("did not come after"))
}

func TestShowSaysWhatWasExpectedAndWhatHappened(t *testing.T) {
	history := historyOf(all, added(owner), added(stored("child", OwnedBy(owner, Blocking))), modified(ownerDies))
	matcher := Show(Terminating(owner), Deleted(child), Deleted(owner))
	_, _ = matcher.Match(history)

	want := `Expected, in this order:
  ConfigMap "owner" terminating
  ConfigMap "child" deleted
  ConfigMap "owner" deleted
Happened:
        0s  ADDED    ConfigMap "owner"
       1ms  ADDED    ConfigMap "child"; owned by ConfigMap "owner" (blocking)
       2ms  MODIFIED ConfigMap "owner"; deletionTimestamp 07:08:09; finalizers ` + Hold + `
ConfigMap "owner" is still there: terminating; the spec holds it (` + Hold + `)
ConfigMap "child" is still there: nobody has asked for its deletion; its owner ConfigMap "owner" (blocking) is still there`
	NewWithT(t).Expect(matcher.FailureMessage(history)).To(Equal(want))
}

func TestShowSaysWhatShouldNotHaveHappened(t *testing.T) {
	g := NewWithT(t)
	matcher := Show(Terminating(owner))
	message := matcher.NegatedFailureMessage(historyOf(all, modified(ownerDies)))
	g.Expect(message).To(HavePrefix("Expected not to happen, in this order:\n  ConfigMap \"owner\" terminating\nHappened:\n"))
	g.Expect(message).To(ContainSubstring("MODIFIED"))
	g.Expect(matcher.NegatedFailureMessage(historyOf(all))).To(ContainSubstring("(nothing happened)"))
}

func TestShowTakesHistoriesOnlyAndNoneWithGaps(t *testing.T) {
	g := NewWithT(t)
	_, err := Show().Match("a text")
	g.Expect(err).To(MatchError("Show matches a *History, not string"))

	gap := historyOf(all, deleted(owner))
	gap.journal.fail(fmt.Errorf("the watch on configmaps was lost"))
	gap.journal.fail(fmt.Errorf("a later consequence"))
	_, err = Show(Deleted(owner)).Match(gap)
	g.Expect(err).To(MatchError("the watch on configmaps was lost"))
	g.Expect(Show(Deleted(owner)).FailureMessage(gap)).To(ContainSubstring("the watch on configmaps was lost"))
}

// shouting is a matcher that names itself.
type shouting struct{ types.GomegaMatcher }

func (shouting) String() string { return "SHOUT" }

func TestNameOf(t *testing.T) {
	for _, test := range []struct {
		matcher types.GomegaMatcher
		want    string
	}{
		{BeTerminating(), "be terminating"},
		{Not(BeTerminating()), "not be terminating"},
		{And(BeTerminating(), HaveGracePeriod(0)), "be terminating and have deletionGracePeriodSeconds 0"},
		{And(Not(BeTerminating()), BeOwnedBy(owner)), `not be terminating and be owned by exactly [ConfigMap "owner"]`},
		{shouting{}, "SHOUT"},
	} {
		if got := nameOf(test.matcher); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
	if got := nameOf(HaveLen(3)); !strings.Contains(got, "3") {
		t.Errorf("a matcher of Gomega's own is shown with what it expects, got %q", got)
	}
}

func TestSeenIsNamedAfterItsMatcher(t *testing.T) {
	message := Show(Seen(owner, And(BeTerminating(), HaveGracePeriod(5)))).FailureMessage(historyOf(all))
	NewWithT(t).Expect(message).To(ContainSubstring(`ConfigMap "owner" seen to be terminating and have deletionGracePeriodSeconds 5`))
}
