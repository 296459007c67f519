package specs_test

import (
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

func TestBehaviorOf_Statement(t *testing.T) {
	behavior, ok := specs.BehaviorOf(types.SpecReport{
		ContainerHierarchyTexts: []string{"Finalizers"}, LeafNodeText: "The name of a deleted object must be free.",
		LeafNodeLabels: []string{"finalizers.name", string(v1alpha1.Core)},
	})
	g := NewWithT(t)
	g.Expect(ok).To(BeTrue())
	g.Expect(behavior.Statement).To(Equal("The name of a deleted object must be free."))
}

func TestRepositoryPath(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"/home/somebody/deletion-conformance/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"github.com/deletion-conformance/deletion-conformance/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"/suites/clone/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"/home/somebody/deletion-conformance/framework/barrier.go", "framework/barrier.go"},
		{"/somebody/framework/clone/suites/cascade/orphan.go", "suites/cascade/orphan.go"},
		{"elsewhere.go", "elsewhere.go"},
	} {
		if got := specs.RepositoryPath(test.file); got != test.want {
			t.Errorf("%s: want %s, got %s", test.file, test.want, got)
		}
	}
}

func TestEvidence_String(t *testing.T) {
	g := NewWithT(t)
	report := types.SpecReport{}
	specs.Evidence{
		Timeline:    v1alpha1.Timeline{Requests: []v1alpha1.Request{{Verb: "DELETE", Path: "/api/v1/namespaces/n/pods/p", Status: 200}}},
		Explanation: []string{`Pod "p" is still there`},
	}.AttachTo(&report)

	g.Expect(report.ReportEntries[0].StringRepresentation()).To(Equal(`["Pod \"p\" is still there"]`))
	g.Expect(specs.EvidenceOf(types.SpecReport{})).To(Equal(specs.Evidence{}))
}

func TestEvidence_Detached(t *testing.T) {
	g := NewWithT(t)
	left := specs.Evidence{Explanation: []string{`Pod "p" is still there`}}
	remark := types.ReportEntry{Name: "of somebody else", Value: types.WrapEntryValue("a text")}
	report := types.SpecReport{LeafNodeText: "a spec", ReportEntries: types.ReportEntries{remark}}
	left.AttachTo(&report)

	without, evidence := specs.Detached(report)

	g.Expect(evidence).To(Equal(left))
	g.Expect(without.ReportEntries).To(Equal(types.ReportEntries{remark}), "what others left stays")
	g.Expect(report.ReportEntries).To(HaveLen(2), "the report itself is as it was")
	evidence.AttachTo(&without)
	g.Expect(without).To(Equal(report))
}
