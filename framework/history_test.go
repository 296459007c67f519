package framework

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// graceful sets a grace period, in seconds.
func graceful(seconds int64) ObjectOption {
	return func(object *Object) { object.SetDeletionGracePeriodSeconds(&seconds) }
}

func TestHistory_SameName(t *testing.T) {
	g := NewWithT(t)
	namesake := stored("owner")
	namesake.SetUID("another-uid")
	history := historyOf([]*Object{owner, child}, added(owner), added(namesake), added(child), deleted(namesake), modified(ownerDies))

	events, err := history.Events()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events).To(HaveLen(3))
	for i, want := range []journal.Event{added(owner), added(child), modified(ownerDies)} {
		g.Expect(events[i].Type).To(Equal(want.Type))
		g.Expect(events[i].Object).To(BeIdenticalTo(want.Object))
	}
	g.Expect(history).NotTo(HaveObserved(Deleted(owner)), "the namesake's end is not the owner's")
}

func TestHistory_Live(t *testing.T) {
	g := NewWithT(t)
	history := historyOf([]*Object{owner})
	g.Expect(history.String()).To(Equal("  none"))

	history.journal.Add(added(owner))
	g.Expect(history.Events()).To(HaveLen(1))

	history.journal.Forget()
	g.Expect(history.Events()).To(BeEmpty())
}

func TestHistory_LostWatch(t *testing.T) {
	g := NewWithT(t)
	lost := errors.New("the watch on pods was lost")
	history := historyOf([]*Object{owner}, added(owner))
	history.journal.Fail(lost)

	_, err := history.Events()
	g.Expect(err).To(MatchError(lost))
	g.Expect(history.String()).To(Equal(lost.Error()))

	history.journal.Forget()
	_, err = history.Events()
	g.Expect(err).NotTo(HaveOccurred(), "a later spec has watches of its own")
}
