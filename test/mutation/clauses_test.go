package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

func TestClauses_Check(t *testing.T) {
	first := behavior("a.first")
	first.Level = v1alpha1.Observed
	first.Statement = "A held object must stay, and its name must not be free."
	catalog := []plan.Behavior{first}
	whole := clauses{"a.first": {"A held object must stay", "its name must not be free"}}
	killer := func(entries ...string) []Mutant {
		mutant := Mutant{Name: "x", KilledBy: entries}
		mutant.splitClauses()
		return []Mutant{mutant}
	}
	both := killer("a.first#1", "a.first#2")
	for name, c := range map[string]struct {
		clauses clauses
		mutants []Mutant
		exempt  map[string]string
		want    string
	}{
		"every clause has its mutant":   {clauses: whole, mutants: both},
		"a clause that is exempt":       {clauses: whole, mutants: killer("a.first#1"), exempt: map[string]string{"a.first#2": "why"}},
		"a clause without a mutant":     {clauses: whole, mutants: killer("a.first#2"), want: `no mutant breaks a.first#1, "A held object must stay"`},
		"a clause that is not there":    {clauses: whole, mutants: append(both, killer("a.first#3")...), want: "x names a.first#3, which is no clause"},
		"a behavior without clauses":    {mutants: killer("a.first#1"), want: "x names a.first#1, which is no clause"},
		"one clause":                    {clauses: clauses{oneClause: {"a.first"}}},
		"neither several nor one":       {clauses: clauses{}, want: "clauses.yaml has no clauses of a.first"},
		"no phrases":                    {clauses: clauses{"a.first": {}}, want: "clauses.yaml has no clauses of a.first"},
		"an exempt behavior":            {clauses: clauses{}, exempt: map[string]string{"a.first": "why"}},
		"several clauses and one":       {clauses: clauses{oneClause: {"a.first"}, "a.first": whole["a.first"]}, mutants: both, want: `and lists it under "single"`},
		"one clause that is not there":  {clauses: clauses{oneClause: {"a.first", "a.second"}}, want: "lists a.second under"},
		"a behavior that is not there":  {clauses: clauses{oneClause: {"a.first"}, "a.second": nil}, want: "clauses.yaml has a.second, which is no behavior"},
		"a phrase of another statement": {clauses: clauses{"a.first": {"must go"}}, want: `does not continue with "must go"`},
		"phrases in another order":      {clauses: clauses{"a.first": {whole["a.first"][1], whole["a.first"][0]}}, want: "does not continue with"},
		"a statement that is not covered": {
			clauses: clauses{"a.first": {"A held object must stay"}}, mutants: killer("a.first#1"), want: `no clause contains "name"`,
		},
		"an exemption of no clause": {clauses: whole, mutants: both, exempt: map[string]string{"a.first#3": "why"}, want: "exempt.yaml has a.first#3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.clauses.check(c.mutants, c.exempt, catalog)
			if c.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestSplitClauses(t *testing.T) {
	mutant := Mutant{KilledBy: []string{"a.first#2", "a.first#1", "b.second"}}
	mutant.splitClauses()
	NewWithT(t).Expect(mutant).To(Equal(Mutant{KilledBy: []string{"a.first", "b.second"}, Clauses: []string{"a.first#2", "a.first#1"}}))
}

// The counts in docs/testing.md are those of the lists.
func TestCounts(t *testing.T) {
	g := NewWithT(t)
	known, err := readKnown()
	g.Expect(err).NotTo(HaveOccurred())
	clauses, err := readClauses()
	g.Expect(err).NotTo(HaveOccurred())
	phrases, exempt := 0, 0
	for _, id := range clauses.ids() {
		for _, entry := range clauses.names(id) {
			phrases++
			if known.exempt[entry] != "" {
				exempt++
			}
		}
	}
	reversed, all := 0, 0
	for _, numbers := range known.fixes {
		for _, reason := range numbers {
			all++
			if reason == "" {
				reversed++
			}
		}
	}
	document, err := os.ReadFile("../../docs/testing.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(document)).To(And(
		ContainSubstring("%d clauses of %d statements; no mutant can break %d of them", phrases, len(clauses.ids()), exempt),
		ContainSubstring("a mutant reverses %d of %d; the others cannot be noticed", reversed, all)))
}
