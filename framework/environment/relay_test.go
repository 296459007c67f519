package environment

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestThePodOfARelayShowsWhyItIsNotReady(t *testing.T) {
	container := func(state corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: state}}
	}
	waiting := func(reason string) []corev1.ContainerStatus {
		return container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}})
	}
	for _, test := range []struct {
		name   string
		status corev1.PodStatus
		reason string
		final  bool
	}{
		{"new", corev1.PodStatus{Phase: corev1.PodPending}, "it is Pending", false},
		{"unschedulable", corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"},
		}}, "0/3 nodes are available", false},
		{"starting", corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating")}, "ContainerCreating", false},
		{"pulled once", corev1.PodStatus{ContainerStatuses: waiting("ErrImagePull")}, "ErrImagePull", false},
		{"no image", corev1.PodStatus{ContainerStatuses: waiting("ImagePullBackOff")}, "ImagePullBackOff: why", true},
		{
			"another image", corev1.PodStatus{ContainerStatuses: container(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}})},
			"it ended with code 2; it must be an image of this runner, as make image writes it", true,
		},
		{"not ready", corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		}, "it is Running", false},
		{"ready", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			reason, final := relayState(corev1.Pod{Status: test.status})
			g.Expect(reason).To(Equal(test.reason))
			g.Expect(final).To(Equal(test.final))
		})
	}
}
