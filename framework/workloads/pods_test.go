package workloads

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/framework"
)

// asObject converts a typed object to one that a watch would deliver.
func asObject(t *testing.T, kind string, typed any) *framework.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := &framework.Object{Object: content}
	object.SetKind(kind)
	return object
}

// podWith returns a pod with one sidecar and these containers.
func podWith(t *testing.T, sidecar corev1.ContainerState, containers ...corev1.ContainerState) *framework.Object {
	t.Helper()
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", State: sidecar}},
	}}
	for i, state := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: string(rune('a' + i)), State: state})
	}
	return asObject(t, "Pod", pod)
}

func TestHaveTerminatedContainers(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}
	g := NewWithT(t)

	pod := podWith(t, running, ended, corev1.ContainerState{})
	g.Expect(pod).NotTo(HaveTerminatedContainers())
	g.Expect(podWith(t, running, ended)).NotTo(HaveTerminatedContainers(), "a sidecar counts")
	g.Expect(podWith(t, ended, ended)).To(HaveTerminatedContainers())
	g.Expect(asObject(t, "Pod", &corev1.Pod{})).NotTo(HaveTerminatedContainers(), "nothing is known of its containers")
	g.Expect(pod).To(framework.HavePhase(corev1.PodPending, corev1.PodRunning))
	g.Expect(pod).NotTo(framework.HavePhase(corev1.PodFailed))
}

func TestHaveStarted(t *testing.T) {
	ended := func(start time.Time, id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(start), ContainerID: id}}
	}
	for name, test := range map[string]struct {
		state corev1.ContainerState
		want  bool
	}{
		"waits":               {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, false},
		"never located":       {ended(time.Time{}, ""), false},
		"runs":                {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, true},
		"ended, with a start": {ended(time.Unix(1715000000, 0), ""), true},
		"ended, with an ID":   {ended(time.Time{}, "containerd://1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := HaveStarted("a").Match(podWith(t, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, test.state))
			if err != nil || got != test.want {
				t.Errorf("want %t, got %t, %v", test.want, got, err)
			}
		})
	}
}

func TestTerminationOf(t *testing.T) {
	finished := time.Unix(1715000000, 0)
	for _, test := range []struct {
		name, note string
		want       Termination
	}{
		{"a note of SIGTERM's second", "1714999990\n", Termination{SignaledAt: time.Unix(1714999990, 0)}},
		{"and a message", "1714999990\nbye\nnow", Termination{SignaledAt: time.Unix(1714999990, 0), Message: "bye\nnow"}},
		{"no note", "", Termination{}},
		{"what is no second", "killed", Termination{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.FinishedAt, test.want.ExitCode = finished, 137
			const skew = 90 * time.Second
			state := &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(finished), Message: test.note}
			g := NewWithT(t)
			g.Expect(terminationOf(state, 0)).To(Equal(test.want))
			if test.want.FinishedAt = finished.Add(-skew); !test.want.SignaledAt.IsZero() {
				test.want.SignaledAt = test.want.SignaledAt.Add(-skew)
			}
			g.Expect(terminationOf(state, skew)).To(Equal(test.want), "on a node whose clock is ahead")
		})
	}
}

func TestRestartsOf(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
	}
	of := func(id string, state, last corev1.ContainerState) *framework.Object {
		return asObject(t, "Pod", &corev1.Pod{Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: "a", ContainerID: id, State: state, LastTerminationState: last, RestartCount: 1}},
		}})
	}
	none := corev1.ContainerState{}
	for name, test := range map[string]struct {
		states []*framework.Object
		want   int
	}{
		"never started":             {[]*framework.Object{of("", waiting, none)}, 0},
		"ended":                     {[]*framework.Object{of("", waiting, none), of("1", running, none), of("1", ended("1"), none)}, 0},
		"removed, and not replaced": {[]*framework.Object{of("1", ended("1"), none), of("", waiting, ended("")), of("", ended(""), none)}, 0},
		"runs again":                {[]*framework.Object{of("1", running, none), of("2", running, ended("1"))}, 1},
		"has run again":             {[]*framework.Object{of("1", running, none), of("1", running, none), of("", ended("3"), ended("2"))}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(restartsOf(test.states)).To(Equal(map[string]int{"a": test.want}))
		})
	}
}
