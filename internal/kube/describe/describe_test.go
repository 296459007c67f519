package describe_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// stored returns a ConfigMap as a server would store it, with its name as uid.
func stored(name string, options ...ObjectOption) *Object {
	object := fixtures.ConfigMap(name)
	object.SetUID(types.UID(name))
	for _, option := range options {
		option(object)
	}
	return object
}

// dying marks an object as terminating.
func dying(object *Object) {
	object.SetDeletionTimestamp(new(metav1.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)))
}

// graceful sets a grace period, in seconds.
func graceful(seconds int64) ObjectOption {
	return func(object *Object) { object.SetDeletionGracePeriodSeconds(&seconds) }
}

func added(object *Object) journal.Event { return journal.Event{Type: watch.Added, Object: object} }
func modified(object *Object) journal.Event {
	return journal.Event{Type: watch.Modified, Object: object}
}
func deleted(object *Object) journal.Event { return journal.Event{Type: watch.Deleted, Object: object} }

var (
	owner     = stored("owner")
	ownerDies = stored("owner", dying, Held)
	ownerFree = stored("owner", dying)
	child     = stored("child")
	other     = stored("other")
)

func TestObject(t *testing.T) {
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
		if got := describe.Object(test.object); got != test.want {
			t.Errorf("want %q, got %q", test.want, got)
		}
	}
}

func TestExplain(t *testing.T) {
	waiting := stored("owner", dying, graceful(0), WithFinalizers(metav1.FinalizerDeleteDependents))
	orphaning := stored("owner", dying, WithFinalizers(metav1.FinalizerOrphanDependents))
	blocker := stored("blocker", OwnedBy(owner, Blocking))
	second := stored("another-blocker", OwnedBy(owner, Blocking))
	still := func(name, reason string) string { return `ConfigMap "` + name + `" still exists: ` + reason }
	for _, test := range []struct {
		name   string
		events []journal.Event
		want   []string
	}{
		{"nothing happened", nil, nil},
		{"everything is gone", []journal.Event{added(owner), deleted(owner)}, nil},
		{"nobody asked", []journal.Event{added(owner)}, []string{still("owner", "no deletionTimestamp")}},
		{
			"nobody asked, and the owner lives",
			[]journal.Event{added(owner), added(blocker)},
			[]string{
				still("owner", "no deletionTimestamp"),
				still("blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) still exists`),
			},
		},
		{
			"nothing is known of its owner",
			[]journal.Event{added(blocker)},
			[]string{still("blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) was not observed`)},
		},
		{
			"its owner is terminating",
			[]journal.Event{added(blocker), modified(ownerDies)},
			[]string{
				still("blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) is terminating`),
				still("owner", "terminating; held by this test's own finalizer ("+Hold+")"),
			},
		},
		{
			"nobody collected it after its owner",
			[]journal.Event{added(owner), added(blocker), deleted(owner)},
			[]string{still("blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) was deleted`)},
		},
		{"held by this test's own finalizer", []journal.Event{modified(ownerDies)}, []string{still("owner", "terminating; held by this test's own finalizer ("+Hold+")")}},
		{
			"it waits for its blocking dependents",
			[]journal.Event{added(blocker), added(second), added(stored("free", OwnedBy(owner))), modified(waiting), deleted(stored("free"))},
			[]string{
				still("blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) is terminating`),
				still("another-blocker", `no deletionTimestamp; its owner ConfigMap "owner" (blocking) is terminating`),
				still("owner", `terminating; finalizer foregroundDeletion waits for blocking dependents: ConfigMap "another-blocker", ConfigMap "blocker"`),
			},
		},
		{
			"it waits for nobody",
			[]journal.Event{added(blocker), modified(waiting), deleted(blocker)},
			[]string{still("owner", "terminating; finalizer foregroundDeletion waits for blocking dependents: none observed")},
		},
		{
			"it waits to be orphaned",
			[]journal.Event{modified(orphaning)},
			[]string{still("owner", "terminating; finalizer orphan waits for the garbage collector")},
		},
		{
			"somebody else's finalizer, and the spec's hold",
			[]journal.Event{modified(stored("owner", dying, WithFinalizers("a.io/b", Hold)))},
			[]string{still("owner", "terminating; finalizer a.io/b is pending; held by this test's own finalizer ("+Hold+")")},
		},
		{
			"its node has not confirmed its end",
			[]journal.Event{modified(stored("pod", dying, graceful(30)))},
			[]string{still("pod", "terminating; the grace period of 30s ends at 2024-05-06T07:08:09Z, and the kubelet has not confirmed termination")},
		},
		{
			"nothing visible keeps it",
			[]journal.Event{modified(stored("owner", dying, graceful(0)))},
			[]string{still("owner", "terminating, with no finalizers and no grace period left")},
		},
		{
			"the last event counts",
			[]journal.Event{added(owner), modified(ownerDies), modified(ownerFree)},
			[]string{still("owner", "terminating, with no finalizers and no grace period left")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(describe.Explain(test.events, test.events)).To(Equal(test.want))
		})
	}
}

// typed returns an object as a watch would deliver it.
func typed(t *testing.T, kind string, content any) *Object {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content)
	if err != nil {
		t.Fatal(err)
	}
	object := &Object{Object: fields}
	object.SetKind(kind)
	object.SetName(kind)
	return object
}

func TestContainers(t *testing.T) {
	g := NewWithT(t)
	pod := typed(t, "Pod", &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodRunning,
		InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}}, {Name: "b"},
		},
	}})
	g.Expect(describe.ContainerStates(pod)).To(Equal([]string{"sidecar: running", "a: terminated (exit 143)", "b: waiting"}))
	g.Expect(describe.Object(pod)).To(Equal(`Pod "Pod"; phase Running; sidecar: running; a: terminated (exit 143); b: waiting`))
	g.Expect(describe.ContainerStates(owner)).To(BeNil(), "it is no pod")
}

func TestEndpoints(t *testing.T) {
	slice := typed(t, "EndpointSlice", &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
		{Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}},
		{Conditions: discoveryv1.EndpointConditions{Terminating: new(true)}},
	}})
	g := NewWithT(t)
	g.Expect(describe.Object(slice)).To(Equal(
		`EndpointSlice "EndpointSlice"; endpoint Pod "p": ready true, serving true, terminating false; ` +
			`endpoint: ready false, serving false, terminating true`))
	g.Expect(describe.Endpoints(owner)).To(BeNil(), "it is no slice")
}

func TestConditions(t *testing.T) {
	g := NewWithT(t)
	object := stored("o")
	g.Expect(describe.Conditions(object)).To(BeEmpty())
	object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	g.Expect(describe.Conditions(object)).To(Equal([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}))
	object.Object["status"] = "fine"
	g.Expect(describe.Conditions(object)).To(BeEmpty(), "what does not fit has none")
}
