package main

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

// behavior returns a behavior of an invented catalog.
func behavior(id string, features ...v1alpha1.Feature) plan.Behavior {
	return plan.Behavior{Behavior: v1alpha1.Behavior{ID: id, Features: features}}
}

func slow(b plan.Behavior) plan.Behavior {
	b.Slow = true
	return b
}

// madeUp is a small catalog with every kind of behavior.
var madeUp = []plan.Behavior{
	behavior("a.one.first", v1alpha1.GC),
	behavior("a.one.custom", v1alpha1.GC, v1alpha1.CRD),
	behavior("a.one.on-node", v1alpha1.Node),
	behavior("a.one.second"),
	slow(behavior("a.one.slow")),
	behavior("a.two.first"),
	behavior("b.one.first"),
	behavior("b.first"),
	behavior("b.second"),
}

func TestExperiments(t *testing.T) {
	for name, test := range map[string]struct {
		scope  scope
		mutant Mutant
		want   []string
	}{
		"its topic, without what waits": {topics, Mutant{KilledBy: []string{"a.one.first"}}, []string{"a.one.first", "a.one.second"}},
		"what waits where it is named":  {topics, Mutant{KilledBy: []string{"a.one.slow"}}, []string{"a.one.first", "a.one.second", "a.one.slow"}},
		"both":                          {topics, Mutant{KilledBy: []string{"a.one.second", "a.one.custom"}}, []string{"a.one.first", "a.one.custom", "a.one.second"}},
		"two topics": {
			topics, Mutant{KilledBy: []string{"a.two.first", "b.one.first"}}, []string{"a.two.first", "b.one.first"},
		},
		"no topic":               {topics, Mutant{KilledBy: []string{"b.first"}}, []string{"b.first", "b.second"}},
		"on a node":              {topics, Mutant{Node: true, KilledBy: []string{"a.one.on-node"}}, []string{"a.one.on-node"}},
		"exactly what is named":  {onlyNamed, Mutant{KilledBy: []string{"a.one.first"}}, []string{"a.one.first"}},
		"everything":             {everything, Mutant{KilledBy: []string{"b.first"}}, []string{"a.one.first", "a.one.custom", "a.one.second", "a.one.slow", "a.two.first", "b.one.first", "b.first", "b.second"}},
		"everything with a node": {everything, Mutant{Node: true, KilledBy: []string{"a.one.on-node"}}, []string{"a.one.on-node"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(idsOf(test.scope.of(madeUp, test.mutant))).To(Equal(test.want))
		})
	}
}

func TestControls(t *testing.T) {
	g := NewWithT(t)
	mutants := []Mutant{
		{Name: "x", KilledBy: []string{"a.two.first"}}, {Name: "y", KilledBy: []string{"b.first"}},
		{Name: "z", Node: true, KilledBy: []string{"a.one.on-node"}},
	}
	planned := experiments(mutants, madeUp, topics)
	g.Expect(planned).To(HaveLen(5))
	g.Expect(idsOf(planned[0].behaviors)).To(Equal([]string{"a.two.first", "b.first", "b.second"}))
	g.Expect(planned[0].arguments()).To(ContainElement(`/^(a\.two\.first|b\.first|b\.second)$/`))
	g.Expect(planned[0].embedded()).To(ContainElements("0", "--wait-timeout"))
	g.Expect(idsOf(planned[1].behaviors)).To(Equal([]string{"a.one.on-node"}))
	g.Expect(planned[1].embedded()).To(And(ContainElement("1"), Not(ContainElement("--wait-timeout"))))
	g.Expect(experiments(mutants[:1], madeUp, topics)).To(HaveLen(2), "one control, without a node")
}

func TestKnown_Consistent(t *testing.T) {
	g := NewWithT(t)
	_, err := readKnown()
	g.Expect(err).NotTo(HaveOccurred())
	exempt := map[string]string{"a.one.first": "because", "gone": "because", "b.first": " "}
	err = check([]Mutant{{Name: "x", KilledBy: []string{"a.one.first", "nothing"}}}, exempt, madeUp)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("x is to be killed by a.one.first, which exempt.yaml exempts"),
		ContainSubstring("x is to be killed by nothing, which is no behavior"),
		ContainSubstring("exempt.yaml has no reason for b.first"),
		ContainSubstring("exempt.yaml has gone, which is no behavior"),
	)))
	g.Expect(unnamed([]Mutant{{KilledBy: []string{"a.two.first"}}}, exempt, madeUp[4:7])).To(Equal([]string{"a.one.slow", "b.one.first"}))
}

func TestSample(t *testing.T) {
	g := NewWithT(t)
	known, err := readKnown()
	g.Expect(err).NotTo(HaveOccurred())
	s := series{sideBySide: 3}
	drawn := sample(known.mutants, known.catalog, "2026-03-04", s)
	g.Expect(len(drawn)).To(BeNumerically(">", 2))
	g.Expect(len(drawn)).To(BeNumerically("<=", handful))
	g.Expect(sample(known.mutants, known.catalog, "2026-03-04", s)).To(Equal(drawn))
	g.Expect(sample(known.mutants, known.catalog, "2026-03-05", s)).NotTo(Equal(drawn))
	g.Expect(s.expected(experiments(drawn, known.catalog, onlyNamed))).To(BeNumerically("<=", sampleTime/2))
}
