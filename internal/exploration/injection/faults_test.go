package injection

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

func TestAll_Complete(t *testing.T) {
	g := NewWithT(t)
	for _, fault := range All {
		g.Expect(fault.Help).NotTo(BeEmpty(), fault.Name)
		g.Expect(fault.PerRound).To(And(BeNumerically(">", 0), BeNumerically("<", 10)), fault.Name)
		g.Expect(fault.inject == nil).NotTo(Equal(fault.react == nil), fault.Name)
		g.Expect(fault.applies == nil).To(Equal(fault.react == nil), fault.Name)
		g.Expect(Help()).To(MatchRegexp(`(?m)^  `+fault.Name+` +\w`), "--help lists it")
	}
}

func TestWithout(t *testing.T) {
	g := NewWithT(t)
	get := generate.Intent{Verb: model.Get}
	programs := []generate.Program{{{Fault: "refuse"}, get, {Fault: "delay"}}, {get}, {{Fault: "refuse"}}}

	g.Expect(NamesIn(programs)).To(Equal([]string{"refuse", "delay"}))
	g.Expect(Without(programs, "refuse")).To(Equal([]generate.Program{{get, {Fault: "delay"}}, {get}, {}}))
	g.Expect(programs[0]).To(HaveLen(3), "the given ones stay")
	g.Expect(NamesIn(Without(Without(programs, "refuse"), "delay"))).To(BeEmpty())
	g.Expect(slices.Concat(Without(programs, "restart")...)).To(HaveLen(5))
}
