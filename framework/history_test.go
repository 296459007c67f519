package framework

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// graceful gives an object a grace period, in seconds.
func graceful(seconds int64) ObjectOption {
	return func(object *Object) { object.SetDeletionGracePeriodSeconds(&seconds) }
}

func TestHistoryTellsObjectsApartByUID(t *testing.T) {
	g := NewWithT(t)
	namesake := stored("owner")
	namesake.SetUID("another-uid")
	history := historyOf([]*Object{owner, child}, added(owner), added(namesake), added(child), deleted(namesake), modified(ownerDies))

	events, err := history.Events()

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events).To(HaveLen(3))
	for i, want := range []Event{added(owner), added(child), modified(ownerDies)} {
		g.Expect(events[i].Type).To(Equal(want.Type))
		g.Expect(events[i].Object).To(BeIdenticalTo(want.Object))
	}
	g.Expect(history).NotTo(Show(Deleted(owner)), "the namesake's end is not the owner's")
}

func TestHistoryIsLive(t *testing.T) {
	g := NewWithT(t)
	history := historyOf([]*Object{owner})
	g.Expect(history.String()).To(Equal("  (nothing happened)"))

	history.journal.add(added(owner))
	g.Expect(history.Events()).To(HaveLen(1))

	history.journal.forget()
	g.Expect(history.Events()).To(BeEmpty())
}

func TestAWatchThatWasLostMakesHistoriesUnknown(t *testing.T) {
	g := NewWithT(t)
	lost := errors.New("the watch on pods was lost")
	history := historyOf([]*Object{owner}, added(owner))
	history.journal.fail(lost)

	_, err := history.Events()
	g.Expect(err).To(MatchError(lost))
	g.Expect(history.String()).To(Equal(lost.Error()))

	history.journal.forget()
	_, err = history.Events()
	g.Expect(err).To(MatchError(lost), "a later spec misses the same watch")
}

func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		object *Object
		want   string
	}{
		{stored("plain"), `ConfigMap "plain"`},
		{
			stored("dying", dying, graceful(30), WithFinalizers(Hold, "a.io/b")),
			`ConfigMap "dying"; deletionTimestamp 07:08:09; grace 30s; finalizers ` + Hold + `, a.io/b`,
		},
		{
			stored("owned", OwnedBy(owner, Blocking), OwnedBy(child, NonBlocking), OwnedBy(other)),
			`ConfigMap "owned"; owned by ConfigMap "owner" (blocking); owned by ConfigMap "child"; owned by ConfigMap "other"`,
		},
	} {
		if got := describe(test.object); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
}

func TestExplain(t *testing.T) {
	waiting := stored("owner", dying, graceful(0), WithFinalizers(metav1.FinalizerDeleteDependents))
	orphaning := stored("owner", dying, WithFinalizers(metav1.FinalizerOrphanDependents))
	blocker := stored("blocker", OwnedBy(owner, Blocking))
	second := stored("another-blocker", OwnedBy(owner, Blocking))
	still := func(name, why string) string { return `ConfigMap "` + name + `" is still there: ` + why }
	for _, test := range []struct {
		name   string
		events []Event
		want   []string
	}{
		{"nothing happened", nil, nil},
		{"everything is gone", []Event{added(owner), deleted(owner)}, nil},
		{"nobody asked", []Event{added(owner)}, []string{still("owner", "nobody has asked for its deletion")}},
		{
			"nobody asked, and the owner lives",
			[]Event{added(owner), added(blocker)},
			[]string{
				still("owner", "nobody has asked for its deletion"),
				still("blocker", `nobody has asked for its deletion; its owner ConfigMap "owner" (blocking) is still there`),
			},
		},
		{
			"nobody collected it after its owner",
			[]Event{added(owner), added(blocker), deleted(owner)},
			[]string{still("blocker", `nobody has asked for its deletion; its owner ConfigMap "owner" (blocking) is gone`)},
		},
		{"the spec holds it", []Event{modified(ownerDies)}, []string{still("owner", "terminating; the spec holds it ("+Hold+")")}},
		{
			"it waits for its blocking dependents",
			[]Event{added(blocker), added(second), added(stored("free", OwnedBy(owner))), modified(waiting), deleted(stored("free"))},
			[]string{
				still("blocker", `nobody has asked for its deletion; its owner ConfigMap "owner" (blocking) is still there`),
				still("another-blocker", `nobody has asked for its deletion; its owner ConfigMap "owner" (blocking) is still there`),
				still("owner", `terminating; it waits for its blocking dependents: ConfigMap "another-blocker", ConfigMap "blocker"`),
			},
		},
		{
			"it waits for nobody",
			[]Event{added(blocker), modified(waiting), deleted(blocker)},
			[]string{still("owner", "terminating; it waits for its blocking dependents: none is left")},
		},
		{
			"it waits to be orphaned",
			[]Event{modified(orphaning)},
			[]string{still("owner", "terminating; it waits for the collector to orphan its dependents")},
		},
		{
			"somebody else's finalizer, and the spec's hold",
			[]Event{modified(stored("owner", dying, WithFinalizers("a.io/b", Hold)))},
			[]string{still("owner", "terminating; finalizer a.io/b is pending; the spec holds it ("+Hold+")")},
		},
		{
			"its node has not confirmed its end",
			[]Event{modified(stored("pod", dying, graceful(30)))},
			[]string{still("pod", "terminating; its grace of 30s ends at 2024-05-06T07:08:09Z and its node has not confirmed its end")},
		},
		{
			"nothing visible keeps it",
			[]Event{modified(stored("owner", dying, graceful(0)))},
			[]string{still("owner", "terminating, and nothing visible keeps it")},
		},
		{
			"the last event counts",
			[]Event{added(owner), modified(ownerDies), modified(ownerFree)},
			[]string{still("owner", "terminating, and nothing visible keeps it")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(Explain(test.events)).To(Equal(test.want))
		})
	}
}

func TestObservationsHoldWhatDeletionIsAbout(t *testing.T) {
	g := NewWithT(t)
	pod := stored("pod", dying, graceful(30), Held, OwnedBy(owner, Blocking))
	pod.SetKind("Pod")
	pod.SetNamespace("somewhere")
	pod.SetResourceVersion("7")
	pod.SetAnnotations(map[string]string{"secret": "of nobody's business"})
	g.Expect(unstructured.SetNestedField(pod.Object, "Running", "status", "phase")).To(Succeed())
	at := time.UnixMilli(5)

	g.Expect(Event{At: at, Type: watch.Modified, Object: pod}.observation()).To(Equal(v1alpha1.Observation{
		At: at, Type: "MODIFIED", ObjectReference: v1alpha1.ObjectReference{Version: "v1", Kind: "Pod", Namespace: "somewhere", Name: "pod", UID: "pod"}, ResourceVersion: "7",
		DeletionTimestamp: pod.GetDeletionTimestamp(), GraceSeconds: new(int64(30)), Finalizers: []string{Hold},
		Owners: pod.GetOwnerReferences(), Phase: "Running",
	}))
}
