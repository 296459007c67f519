package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestLostNode_Reasons(t *testing.T) {
	object := func(typed any) *Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		return &Object{Object: content}
	}
	pending := func(message string) *Object {
		return object(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message},
		}}})
	}
	node := func(status corev1.ConditionStatus) *Object {
		return object(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status, Message: "Kubelet stopped posting node status."},
		}}})
	}
	g := NewWithT(t)
	g.Expect(whyPending(pending("0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }."))).To(
		HavePrefix(`no node takes pod "pod": 0/1 nodes are available`))
	g.Expect(whyPending(pending("0/1 nodes are available: 1 Insufficient memory."))).To(BeEmpty())
	g.Expect(whyNotReady(node(corev1.ConditionUnknown))).To(Equal(`node "one" is not Ready: Kubelet stopped posting node status.`))
	g.Expect(whyNotReady(node(corev1.ConditionTrue))).To(BeEmpty())
}
