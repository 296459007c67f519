package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestNotReady(t *testing.T) {
	object := func(typed any) *Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		return &Object{Object: content}
	}
	node := func(status corev1.ConditionStatus) *Object {
		return object(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status, Message: "Kubelet stopped posting node status."},
		}}})
	}
	g := NewWithT(t)
	g.Expect(ready(node(corev1.ConditionTrue))).To(BeTrue())
	g.Expect(ready(node(corev1.ConditionUnknown))).To(BeFalse())
	g.Expect(notReady(node(corev1.ConditionUnknown))).To(Equal(`node "one" is not Ready: Kubelet stopped posting node status.`))
	g.Expect(notReady(object(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))).To(Equal(`node "new" is not Ready: its kubelet has not reported yet`))
}
