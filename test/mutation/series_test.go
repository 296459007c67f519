package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// fakeRunner copies the prepared report of the mutant to the folder in its last argument, and records that it ran. Without a report it runs until it is interrupted.
const fakeRunner = `#!/bin/sh
here=$(dirname "$0")
mutant=$(cat "$here"/kubernetes/v1.2.3/active-mutant)
echo "$mutant" >> %[1]s/ran
if [ ! -e %[1]s/"$mutant".json ]; then echo waiting; exec sleep 60; fi
for folder; do :; done
cp %[1]s/"$mutant".json "$folder"/report.json
echo "said"; echo "reports: $folder"; echo "0 passed, 0 failed, 1 skipped"
exit $(cat %[1]s/"$mutant".exit)
`

// fake returns a laboratory with a fake runner.
func fake(t *testing.T) (l laboratory, prepared string) {
	t.Helper()
	g := NewWithT(t)
	l, prepared = laboratory{folder: t.TempDir()}, t.TempDir()
	g.Expect(os.MkdirAll(l.path("kubernetes", "v1.2.3"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(l.path("kubernetes", "v1.2.3", "kubernetes"), nil, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(l.path("kubernetes", "v1.2.3", "kubectl"), nil, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(l.path("runner"), fmt.Appendf(nil, fakeRunner, prepared), 0o755)).To(Succeed())
	return l, prepared
}

// layOut prepares the report of a run with the mutant: what failed, and the other behaviors of the run.
func layOut(t *testing.T, prepared, mutant string, exit int, failed ...string) {
	t.Helper()
	g := NewWithT(t)
	var results []v1alpha1.Result
	for _, behavior := range madeUp {
		outcome := v1alpha1.Passed
		for _, id := range failed {
			if id == behavior.ID {
				outcome = v1alpha1.Failed
			}
		}
		results = append(results, reporttest.Ran(behavior.ID, "holds", outcome))
	}
	var written bytes.Buffer
	g.Expect(report.WriteJSON(&written, reporttest.Run("run", 0, reporttest.OnCluster("local", results...)))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(prepared, mutant+".json"), written.Bytes(), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(prepared, mutant+".exit"), fmt.Append(nil, exit), 0o644)).To(Succeed())
}

func TestConclusion_Lists(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	mutants := []Mutant{
		{Name: "killed", Breaks: "One.", OwnCluster: "why", KilledBy: []string{"a.one.first"}},
		{Name: "survived", Breaks: "Two.", OwnCluster: "why", KilledBy: []string{"b.first"}},
		{Name: "otherwise", Breaks: "Three.", OwnCluster: "why", KilledBy: []string{"a.two.first", "b.second"}},
		{Name: "broken", Breaks: "Four.", KilledBy: []string{"a.one.slow"}},
	}
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "killed", 1, "a.one.first", "a.one.second")
	layOut(t, prepared, "survived", 0)
	layOut(t, prepared, "otherwise", 1, "b.second", "b.one.first")
	layOut(t, prepared, "broken", 3)
	var out, lists bytes.Buffer
	s := series{experiments: experiments(mutants, madeUp, topics), sideBySide: 2, out: &out}
	outcomes := s.test(t.Context(), l)
	g.Expect(outcomes).To(HaveLen(5))
	g.Expect(out.String()).To(And(HavePrefix("5 runs, up to 4 side by side: about "), ContainSubstring(" 5/5 ")))

	ran, err := os.ReadFile(filepath.Join(prepared, "ran"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(ran))).To(ConsistOf("none", "killed", "survived", "survived", "otherwise", "otherwise", "broken", "broken"),
		"what is not killed next to other runs is run again")
	g.Expect(out.String()).To(ContainSubstring("survived was repeated with a separate cluster: not killed next to other runs"))

	concluded := conclude(outcomes, idsOf(madeUp), map[string]string{"a.one.custom": "why", "a.one.second": "why"})
	concluded.write(&lists)
	g.Expect(concluded.holds()).To(BeFalse())
	g.Expect(lists.String()).To(Equal(`
Runs without a result (1):
  broken: run the suites: exit code 3: said

Different from what the files of mutants name (1):
  otherwise: not killed by a.two.first

Behaviors exempt from mutants that failed on one (1):
  a.one.second: killed made it fail

Behaviors that killed no mutant (4):
  a.one.on-node
  a.one.slow
  a.two.first
  b.first

Mutants that survived (1):
  survived: Two.
`))
}

func TestConclusion_Holds(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "x", 1, "a.two.first")
	s := series{experiments: experiments([]Mutant{{Name: "x", OwnCluster: "why", KilledBy: []string{"a.two.first"}}}, madeUp, onlyNamed), sideBySide: 1, out: new(bytes.Buffer)}
	outcomes := s.test(t.Context(), l)
	concluded := conclude(outcomes, namedBy(outcomes), nil)
	var lists bytes.Buffer
	concluded.write(&lists)
	g.Expect(concluded.holds()).To(BeTrue())
	g.Expect(lists.String()).To(Equal("\nBehaviors that killed no mutant: none\n\nMutants that survived: none\n"))
}

func TestConclusion_FailingControl(t *testing.T) {
	g := NewWithT(t)
	control := outcome{experiment: experiment{mutant: Mutant{Name: "none"}}, missed: []string{"a.two.first"}}
	concluded := conclude([]outcome{control}, []string{"a.two.first"}, nil)
	g.Expect(concluded.otherwise).To(ConsistOf("no mutant (none), and failed: a.two.first"))
	g.Expect(concluded.killedNone).To(ConsistOf("a.two.first"))
}

func TestSeries_Resumed(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "x", 1, "a.two.first")
	mutants := []Mutant{{Name: "x", OwnCluster: "why", KilledBy: []string{"a.two.first"}}, {Name: "y", OwnCluster: "why", KilledBy: []string{"b.first"}}}
	s := series{experiments: experiments(mutants, madeUp, onlyNamed), sideBySide: 1, again: true, out: new(bytes.Buffer)}
	ctx, interrupt := context.WithCancel(t.Context())
	ran := func() []string {
		content, _ := os.ReadFile(filepath.Join(prepared, "ran"))
		return strings.Fields(string(content))
	}
	go func() {
		defer interrupt()
		for deadline := time.Now().Add(10 * time.Second); len(ran()) < 3 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond) // other processes write the file, and nothing notifies
		}
	}()
	g.Expect(s.test(ctx, l)).To(HaveLen(2), "an interrupted run has no outcome")

	layOut(t, prepared, "y", 1, "b.first")
	outcomes := s.test(t.Context(), l)
	g.Expect(outcomes).To(HaveLen(3))
	g.Expect(conclude(outcomes, namedBy(outcomes), nil).holds()).To(BeTrue())
	g.Expect(ran()).To(HaveExactElements("none", "x", "y", "y"), "only runs without an outcome are repeated")

	g.Expect(os.Remove(l.path("runner"))).To(Succeed())
	g.Expect(os.WriteFile(l.path("runner"), fmt.Appendf(nil, fakeRunner, prepared), 0o755)).To(Succeed())
	g.Expect(s.test(t.Context(), l)).To(HaveLen(3))
	g.Expect(ran()[4:]).To(HaveExactElements("none", "x", "y"), "with another runner all are repeated")
}

func TestTimeFor_Waits(t *testing.T) {
	g := NewWithT(t)
	planned := experiments([]Mutant{
		{Name: "slow", KilledBy: []string{"a.one.slow"}}, {Name: "custom", KilledBy: []string{"a.one.custom"}},
		{Name: "x", OwnCluster: "why", KilledBy: []string{"b.first"}}, {Name: "y", OwnCluster: "why", KilledBy: []string{"b.first"}},
	}, madeUp, onlyNamed)[1:]
	s := series{experiments: planned, sideBySide: 1}
	g.Expect(s.expected(planned)).To(Equal(100*time.Second), "two beside two others of which one comes after the other")
	g.Expect(s.expected(planned[2:])).To(Equal(40 * time.Second))
	g.Expect(s.expected([]experiment{{mutant: Mutant{KilledBy: []string{"b.first"}}, behaviors: madeUp[7:8]}})).To(Equal(6 * time.Second))
	ended := []outcome{{experiment: planned[0], took: 200 * time.Second}}
	g.Expect(s.left(ended)).To(Equal(110*time.Second), "all takes twice as long as expected")
}
