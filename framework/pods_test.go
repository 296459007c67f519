package framework

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// asObject is a typed object as a watch would deliver it.
func asObject(t *testing.T, kind string, typed any) *Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := &Object{Object: content}
	object.SetKind(kind)
	return object
}

// podWith is a pod with one sidecar and these containers.
func podWith(t *testing.T, sidecar corev1.ContainerState, containers ...corev1.ContainerState) *Object {
	t.Helper()
	pod := &corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", State: sidecar}},
	}}
	for i, state := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: string(rune('a' + i)), State: state})
	}
	return asObject(t, "Pod", pod)
}

func TestContainerStates(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}
	g := NewWithT(t)

	pod := podWith(t, running, ended, corev1.ContainerState{})
	g.Expect(containerStates(pod)).To(Equal([]string{"sidecar: running", "a: terminated (exit 143)", "b: waiting"}))
	g.Expect(pod).NotTo(HaveEnded())
	g.Expect(podWith(t, running, ended)).NotTo(HaveEnded(), "a sidecar counts")
	g.Expect(podWith(t, ended, ended)).To(HaveEnded())
	g.Expect(asObject(t, "Pod", &corev1.Pod{})).NotTo(HaveEnded(), "nothing is known of its containers")
	g.Expect(containerStates(owner)).To(BeNil(), "it is no pod")
	g.Expect(pod).To(HavePhase(corev1.PodPending, corev1.PodRunning))
	g.Expect(pod).NotTo(HavePhase(corev1.PodFailed))
}

func TestEndOf(t *testing.T) {
	finished := time.Unix(1715000000, 0)
	for _, test := range []struct {
		name, note string
		want       End
	}{
		{"a note of SIGTERM's second", "1714999990\n", End{Terminated: time.Unix(1714999990, 0)}},
		{"and a message", "1714999990\nbye\nnow", End{Terminated: time.Unix(1714999990, 0), Message: "bye\nnow"}},
		{"no note", "", End{}},
		{"what is no second", "killed", End{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Finished, test.want.ExitCode = finished, 137
			got := endOf(&corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(finished), Message: test.note})
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

func TestImagesComeFromTheMirror(t *testing.T) {
	g := NewWithT(t)
	image := func(object *Object, path ...string) string {
		spec := object.Object
		for _, field := range path {
			spec = spec[field].(map[string]any)
		}
		return spec["containers"].([]any)[0].(map[string]any)["image"].(string)
	}
	pod, replicas := fixtures.GhostBoundPod("pod"), fixtures.ReplicaSet("set")
	before := image(pod, "spec")

	fromMirror(pod, "")
	g.Expect(image(pod, "spec")).To(Equal(before))

	fromMirror(pod, "mirror.example:5000/kubernetes")
	fromMirror(replicas, "mirror.example:5000/kubernetes")
	g.Expect(image(pod, "spec")).To(HavePrefix("mirror.example:5000/kubernetes/"))
	g.Expect(image(replicas, "spec", "template", "spec")).To(HavePrefix("mirror.example:5000/kubernetes/"))

	fromMirror(stored("plain"), "mirror.example") // which has no images
}

func TestHaveEndpoint(t *testing.T) {
	g := NewWithT(t)
	slice := func(ready, terminating *bool) *Object {
		return asObject(t, "EndpointSlice", &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
			{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{UID: "other"}},
			{Conditions: discoveryv1.EndpointConditions{Ready: ready, Terminating: terminating}, TargetRef: &corev1.ObjectReference{UID: "owner"}},
			{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
		}})
	}
	g.Expect(slice(new(true), nil)).To(HaveEndpoint(owner, Ready))
	g.Expect(slice(new(true), new(true))).NotTo(HaveEndpoint(owner, Ready))
	g.Expect(slice(new(false), new(true))).To(HaveEndpoint(owner, NotReadyAndTerminating))
	g.Expect(slice(new(false), nil)).NotTo(HaveEndpoint(owner, NotReadyAndTerminating))
	g.Expect(slice(new(true), nil)).NotTo(HaveEndpoint(child, Ready))
}

func TestSimulatedBy(t *testing.T) {
	annotated := func(name string) *Object {
		node := stored("node")
		node.SetAnnotations(map[string]string{name: "fake"})
		return node
	}
	for _, test := range []struct {
		name string
		node *Object
		want string
	}{
		{"a real node", stored("node"), ""},
		{"KWOK's annotation", annotated("kwok.x-k8s.io/node"), "KWOK"},
		{"KWOK's label", stored("node", WithLabel("type", "kwok")), "KWOK"},
		{"Virtual Kubelet's label", stored("node", WithLabel("type", "virtual-kubelet")), "Virtual Kubelet"},
	} {
		if got := simulatedBy(test.node); got != test.want {
			t.Errorf("%s: want %q, got %q", test.name, test.want, got)
		}
	}
}
