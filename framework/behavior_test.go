package framework

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

// These specs are not run. Behavior must be readable from Ginkgo's own report of them.
var _ = ginkgo.Describe("a thing", func() {
	ginkgo.It("goes at once", Behavior("sample.plain", Core), func() {})
	ginkgo.It("goes in the end", Behavior("sample.some.topic.last-name", Observed, Node, GC, Slow, Since("1.30")), func() {})
	ginkgo.It("is no behavior", ginkgo.Label("extended", "features:gc"), func() {})
})

func TestBehavior_RoundTrip(t *testing.T) {
	behaviors := map[string]v1alpha1.Behavior{}
	for _, spec := range ginkgo.PreviewSpecs("samples").SpecReports {
		if behavior, ok := specs.BehaviorOf(spec); ok {
			behaviors[behavior.ID] = behavior
		}
	}

	g := NewWithT(t)
	g.Expect(behaviors).To(HaveLen(2), "a spec without an id is no behavior")
	plain, rich := behaviors["sample.plain"], behaviors["sample.some.topic.last-name"]
	g.Expect(plain.Line).To(BeNumerically(">", 0))
	g.Expect(plain.File).To(HaveSuffix("behavior_test.go"))
	plain.File, plain.Line, rich.File, rich.Line = "", 0, "", 0
	g.Expect(plain).To(Equal(v1alpha1.Behavior{
		ID: "sample.plain", Statement: "goes at once", Level: Core, Features: []v1alpha1.Feature{},
	}))
	g.Expect(rich).To(Equal(v1alpha1.Behavior{
		ID: "sample.some.topic.last-name", Statement: "goes in the end", Level: Observed, Features: []v1alpha1.Feature{v1alpha1.GC, v1alpha1.Node}, Since: "1.30", Slow: true,
	}), "needs come in the order in which they are named everywhere")
	g.Expect(plain.Suite()).To(Equal("sample"))
	g.Expect(plain.Topic()).To(BeEmpty())
	g.Expect(rich.Suite()).To(Equal("sample"))
	g.Expect(rich.Topic()).To(Equal("some.topic"))
}

func TestBehavior_InvalidID(t *testing.T) {
	for _, id := range []string{"", "cascade", "Cascade.name", "cascade.", ".name", "cascade.two words", "cascade.a:b", "cascade..name"} {
		t.Run(id, func(t *testing.T) {
			NewWithT(t).Expect(func() { Behavior(id, Core) }).To(PanicWith(ContainSubstring("must look like suite.topic.name")))
		})
	}
}
