package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFixes_Check(t *testing.T) {
	mutants := []Mutant{{Name: "x", Fix: 7}, {Name: "y"}, {Name: "z", Fix: 7}}
	for name, c := range map[string]struct {
		fixes fixes
		want  string
	}{
		"consistent":       {fixes{"1.20": {7: "", 8: "a race"}}, ""},
		"without a reason": {fixes{"1.20": {8: ""}}, "no mutant reverses the fix 8; fixes.yaml must have a reason"},
		"with both":        {fixes{"1.20": {7: "a race"}}, "has a reason why no mutant reverses 7, but one does"},
		"in two releases":  {fixes{"1.20": {8: "a race"}, "1.21": {8: "a race"}}, "fixes.yaml has 8 in 1.20 and in 1.21"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.fixes.check(mutants)
			if c.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

// The list is that of the release notes up to 1.37.
func TestFixes_Complete(t *testing.T) {
	all, err := readFixes()
	numbers := 0
	for _, ofRelease := range all {
		numbers += len(ofRelease)
	}
	NewWithT(t).Expect(numbers, err).To(Equal(274))
}

func TestFixes_Reversing(t *testing.T) {
	g := NewWithT(t)
	mutants := []Mutant{{Name: "x", Fix: 7}, {Name: "y"}, {Name: "z", Fix: 7}}
	listed := fixes{"1.20": {7: "", 8: "a race"}}
	g.Expect(listed.reversing(mutants, 7)).To(Equal([]Mutant{mutants[0], mutants[2]}))
	_, err := listed.reversing(mutants, 8)
	g.Expect(err).To(MatchError("no mutant reverses the fix 8: a race"))
	_, err = listed.reversing(mutants, 9)
	g.Expect(err).To(MatchError("no mutant reverses the fix 9; -list lists those that reverse one"))
}

func TestFixes_TableCurrent(t *testing.T) {
	g := NewWithT(t)
	mutants, err := readMutants(ofBehaviors)
	g.Expect(err).NotTo(HaveOccurred())
	want, err := encodeFixes(mutants)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile("../../internal/engine/plan/fixes.json")).To(BeEquivalentTo(want), "`make docs` generates it")
}
