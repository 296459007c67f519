package graceful

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// encoded converts a typed object to one that a watch would deliver.
func encoded(t *testing.T, typed any) *Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	return &Object{Object: content}
}

func TestHaveEndpoint(t *testing.T) {
	g := NewWithT(t)
	owner, child := fixtures.UnscheduledPod("owner"), fixtures.UnscheduledPod("child")
	owner.SetUID("owner")
	child.SetUID("child")
	slice := func(ready, terminating *bool) *Object {
		return encoded(t, &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
			{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{UID: "other"}},
			{Conditions: discoveryv1.EndpointConditions{Ready: ready, Terminating: terminating}, TargetRef: &corev1.ObjectReference{UID: "owner"}},
			{Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
		}})
	}
	g.Expect(slice(new(true), nil)).To(haveEndpoint(owner, endpointReady))
	g.Expect(slice(new(true), new(true))).NotTo(haveEndpoint(owner, endpointReady))
	g.Expect(slice(new(false), new(true))).To(haveEndpoint(owner, endpointTerminating))
	g.Expect(slice(new(false), nil)).NotTo(haveEndpoint(owner, endpointTerminating))
	g.Expect(slice(new(true), nil)).NotTo(haveEndpoint(child, endpointReady))
}
