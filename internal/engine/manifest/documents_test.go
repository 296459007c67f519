package manifest

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDocuments_Order(t *testing.T) {
	g := NewWithT(t)
	documents, err := decode(strings.NewReader(`---
apiVersion: example.com/v1
kind: Rack
metadata: {name: first}
---
---
# only a comment
---
{"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 3}}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documents).To(HaveLen(2))
	g.Expect(documents[0].GetKind()).To(Equal("Rack"))
	g.Expect(documents[1].Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("size", BeNumerically("==", 3))))
}

func TestDocuments_List(t *testing.T) {
	g := NewWithT(t)
	documents, err := decode(strings.NewReader(`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret}, {apiVersion: example.com/v1, kind: Widget}]}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documents).To(HaveLen(2))
	g.Expect(documents[1].GetKind()).To(Equal("Widget"))
}

func TestTemplate(t *testing.T) {
	g := NewWithT(t)
	documents, err := decode(strings.NewReader(`apiVersion: example.com/v1
kind: Widget
metadata:
  name: exported
  namespace: production
  uid: 6fa459ea-ee8a-3ca4-894e-db77e160355e
  resourceVersion: "17"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
  selfLink: /apis/example.com/v1/namespaces/production/widgets/exported
  finalizers: [example.com/release]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "1"}]
  managedFields: [{manager: kubectl, operation: Apply}]
  labels: {app: widget}
  annotations: {example.com/team: storage, kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec: {size: 3}
status: {phase: Ready}
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Template(documents[0]).Object).To(Equal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": documents[0].Object["spec"],
		"metadata": map[string]any{
			"name": "exported", "labels": map[string]any{"app": "widget"}, "annotations": map[string]any{"example.com/team": "storage"},
		},
	}))
	g.Expect(documents[0].GetUID()).NotTo(BeEmpty(), "it is a copy")
}

func TestDecode_Invalid(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"nothing", "", "it contains no manifest"},
		{"only comments", "# nothing\n---\n", "it contains no manifest"},
		{"another document", "name: a pipeline\nsteps: []\n", "document 1 has no apiVersion and kind"},
		{"a list", "- one\n- two\n", "document 1"},
		{"the second", "apiVersion: v1\nkind: Secret\n---\nkind: Secret\n", "document 2 has no apiVersion and kind"},
		{"no YAML", "a: [b\n", "document 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := decode(strings.NewReader(test.content))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
