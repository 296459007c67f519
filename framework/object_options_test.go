package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestOwnerOptions(t *testing.T) {
	reference := func(name string, blocking *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: apitypes.UID(name), BlockOwnerDeletion: blocking}
	}
	for _, test := range []struct {
		name    string
		options []ObjectOption
		want    []metav1.OwnerReference
	}{
		{"an owner", []ObjectOption{OwnedBy(owner)}, []metav1.OwnerReference{reference("owner", nil)}},
		{"a blocking one", []ObjectOption{OwnedBy(owner, Blocking)}, []metav1.OwnerReference{reference("owner", new(true))}},
		{"one that says false", []ObjectOption{OwnedBy(owner, NonBlocking)}, []metav1.OwnerReference{reference("owner", new(false))}},
		{
			"two", []ObjectOption{OwnedBy(owner, Blocking), OwnedBy(other)},
			[]metav1.OwnerReference{reference("owner", new(true)), reference("other", nil)},
		},
		{
			"one of two dropped", []ObjectOption{OwnedBy(owner), OwnedBy(other), NotOwnedBy(owner)},
			[]metav1.OwnerReference{reference("other", nil)},
		},
		{"one replaced", []ObjectOption{OwnedBy(owner, Blocking), NotOwnedBy(owner), OwnedBy(owner, NonBlocking)}, []metav1.OwnerReference{reference("owner", new(false))}},
		{"somebody else dropped", []ObjectOption{OwnedBy(owner), NotOwnedBy(other)}, []metav1.OwnerReference{reference("owner", nil)}},
		{"the last dropped", []ObjectOption{OwnedBy(owner), NotOwnedBy(owner)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			object := stored("object", test.options...)
			if len(test.want) == 0 {
				g.Expect(object.GetOwnerReferences()).To(BeEmpty())
				return
			}
			g.Expect(object.GetOwnerReferences()).To(Equal(test.want))
		})
	}
}

func TestObjectOptions(t *testing.T) {
	g := NewWithT(t)
	object := stored("object", Held, WithFinalizers("a.io/b", "a.io/c"))
	g.Expect(object).To(HaveFinalizers(Hold, "a.io/b", "a.io/c"))
	WithoutFinalizers(Hold, "a.io/c", "a.io/unknown")(object)
	g.Expect(object).To(HaveFinalizers("a.io/b"))

	Named("another")(object)
	g.Expect(object.GetName()).To(Equal("another"))

	WithMetadata(map[string]any{"annotations": map[string]any{"a": "b"}, "finalizers": nil})(object)
	g.Expect(object.GetAnnotations()).To(HaveKeyWithValue("a", "b"))
	g.Expect(object).To(HaveFinalizers())

	pod := fixtures.GhostBoundPod("pod")
	WithGrace(45)(pod)
	g.Expect(pod.Object["spec"]).To(HaveKeyWithValue("terminationGracePeriodSeconds", int64(45)))
}
