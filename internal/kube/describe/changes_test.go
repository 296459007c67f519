package describe_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

func TestChanges(t *testing.T) {
	object := func(labels map[string]string, selector map[string]any) *unstructured.Unstructured {
		made := &unstructured.Unstructured{Object: map[string]any{}}
		made.SetLabels(labels)
		if selector != nil {
			made.Object["spec"] = map[string]any{"selector": selector}
		}
		return made
	}
	g := NewWithT(t)
	before := object(map[string]string{"app": "a", "old": "1", "same": "s"}, map[string]any{"app": "a"})
	g.Expect(describe.Changes(nil, before)).To(BeEmpty())
	g.Expect(describe.Changes(before, before)).To(BeEmpty())
	g.Expect(describe.Changes(before, object(map[string]string{"app": "b", "new": "2", "same": "s"}, nil))).To(Equal([]string{
		"label app: a to b", "label new=2 added", "label old=1 removed", `spec.selector: {"app":"a"} to none`,
	}))
	g.Expect(describe.Changes(object(nil, nil), object(map[string]string{"new": "2"}, map[string]any{"app": "a"}))).To(Equal([]string{
		"label new=2 added", `spec.selector: none to {"app":"a"}`,
	}))
}
