package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
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

func TestKnown_WrittenFiles(t *testing.T) {
	g := NewWithT(t)
	known, err := readKnown()
	g.Expect(err).NotTo(HaveOccurred())
	table, err := encodeFixes(known.mutants)
	g.Expect(err).NotTo(HaveOccurred())
	record, err := known.record()
	g.Expect(err).NotTo(HaveOccurred())
	for file, want := range map[string][]byte{fixesOfBehaviors: table, trackRecord: record} {
		g.Expect(os.ReadFile("../../"+file)).To(BeEquivalentTo(want), "`make docs` generates %s", file)
	}
}

// Each heading of docs/upstream.md that the record names exists, and so does each behavior.
func TestReleased(t *testing.T) {
	g := NewWithT(t)
	known, err := readKnown()
	g.Expect(err).NotTo(HaveOccurred())
	all, err := readReleased()
	g.Expect(err).NotTo(HaveOccurred())
	upstream, err := os.ReadFile("../../docs/upstream.md")
	g.Expect(err).NotTo(HaveOccurred())
	for _, fault := range all {
		if !issue.MatchString(fault.Report) {
			g.Expect(string(upstream)).To(ContainSubstring("\n## " + fault.Report + "\n"))
		}
		for _, id := range fault.NoticedBy {
			if !strings.HasPrefix(id, "explore.") {
				at := slices.IndexFunc(known.catalog, func(b plan.Behavior) bool { return b.ID == id })
				g.Expect(at).To(BeNumerically(">=", 0), id)
				if strings.Contains(fault.Command, "--label-filter") && known.catalog[at].Slow {
					g.Expect(fault.Command).To(ContainSubstring("--slow"), "%s is slow", id)
				}
			}
		}
	}
}

func TestLinkOf(t *testing.T) {
	for report, want := range map[string]string{
		"kubernetes#7":                   "[kubernetes#7](https://github.com/kubernetes/kubernetes/issues/7)",
		"k3s-io/kine#8":                  "[k3s-io/kine#8](https://github.com/k3s-io/kine/issues/8)",
		"kine: a delete, and its 2 keys": "[kine: a delete, and its 2 keys](upstream.md#kine-a-delete-and-its-2-keys)",
	} {
		NewWithT(t).Expect(linkOf(report)).To(Equal(want))
	}
}

func TestCheckReports(t *testing.T) {
	g := NewWithT(t)
	g.Expect(checkReports([]Mutant{{Name: "x", Reports: []string{"kubernetes#7", "k3s-io/kine#8"}}})).To(Succeed())
	g.Expect(checkReports([]Mutant{{Name: "x", Reports: []string{"kine#8"}}})).To(MatchError(ContainSubstring(`mutant x: the report "kine#8" is not`)))
}
