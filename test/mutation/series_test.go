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

// fakeRunner copies the report that was laid out for the defect, and notes that it ran. Without a report it goes on until
// it is interrupted.
const fakeRunner = `#!/bin/sh
here=$(dirname "$0")
defect=$(cat "$here"/kubernetes/v1.2.3/planted-defect)
echo "$defect" >> %[1]s/ran
if [ ! -e %[1]s/"$defect".json ]; then echo waiting; exec sleep 60; fi
cp %[1]s/"$defect".json "$3"/report.json
echo "said"; echo "reports: $3"; echo "0 passed, 0 failed, 1 skipped"
exit $(cat %[1]s/"$defect".exit)
`

// fake is a laboratory whose runner only says what a test wants.
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

// layOut makes the report of a run with the defect: what failed, and the other behaviours that were run.
func layOut(t *testing.T, prepared, defect string, exit int, failed ...string) {
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
	g.Expect(os.WriteFile(filepath.Join(prepared, defect+".json"), written.Bytes(), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(prepared, defect+".exit"), fmt.Append(nil, exit), 0o644)).To(Succeed())
}

func TestASeriesEndsWithWhatMustBeEmpty(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	defects := []Defect{
		{Name: "noticed", Breaks: "One.", Noticed: []string{"a.one.first"}},
		{Name: "unnoticed", Breaks: "Two.", Noticed: []string{"b.first"}},
		{Name: "otherwise", Breaks: "Three.", Noticed: []string{"a.two.first", "b.second"}},
		{Name: "broken", Breaks: "Four.", Noticed: []string{"a.one.slow"}},
	}
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "noticed", 1, "a.one.first", "a.one.second")
	layOut(t, prepared, "unnoticed", 0)
	layOut(t, prepared, "otherwise", 1, "b.second", "b.one.first")
	layOut(t, prepared, "broken", 3)
	var out, lists bytes.Buffer
	s := series{experiments: experiments(defects, madeUp, topics), sideBySide: 2, out: &out}
	verdicts := s.judge(t.Context(), l)
	g.Expect(verdicts).To(HaveLen(5))
	g.Expect(out.String()).To(And(HavePrefix("5 runs, up to 4 side by side: about "), ContainSubstring(" 5/5 ")))

	concluded := conclude(verdicts, idsOf(madeUp), map[string]string{"a.one.custom": "why", "a.one.second": "why"})
	concluded.write(&lists)
	g.Expect(concluded.holds()).To(BeFalse())
	g.Expect(lists.String()).To(Equal(`
Runs that came to no verdict (1):
  broken: run the suites: exit code 3: said

Not as their files say (1):
  otherwise: not noticed by a.two.first

Behaviours that unplantable.yaml says no defect makes fail, and one did (1):
  a.one.second: noticed made it fail

Behaviours that never failed (4):
  a.one.on-node
  a.one.slow
  a.two.first
  b.first

Defects that nothing noticed (1):
  unnoticed: Two.
`))
}

func TestWhatHoldsIsSaid(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "x", 1, "a.two.first")
	s := series{experiments: experiments([]Defect{{Name: "x", Noticed: []string{"a.two.first"}}}, madeUp, onlyNamed), sideBySide: 1, out: new(bytes.Buffer)}
	verdicts := s.judge(t.Context(), l)
	concluded := conclude(verdicts, namedBy(verdicts), nil)
	var lists bytes.Buffer
	concluded.write(&lists)
	g.Expect(concluded.holds()).To(BeTrue())
	g.Expect(lists.String()).To(Equal("\nBehaviours that never failed: none\n\nDefects that nothing noticed: none\n"))
}

func TestAFailingControlIsSaid(t *testing.T) {
	g := NewWithT(t)
	control := verdict{experiment: experiment{defect: Defect{Name: "none"}}, missed: []string{"a.two.first"}}
	concluded := conclude([]verdict{control}, []string{"a.two.first"}, nil)
	g.Expect(concluded.otherwise).To(ConsistOf("nothing planted (none), and not held: a.two.first"))
	g.Expect(concluded.neverFailed).To(ConsistOf("a.two.first"))
}

func TestASeriesGoesOnAfterAnInterruption(t *testing.T) {
	g := NewWithT(t)
	l, prepared := fake(t)
	layOut(t, prepared, "none", 0)
	layOut(t, prepared, "x", 1, "a.two.first")
	defects := []Defect{{Name: "x", Noticed: []string{"a.two.first"}}, {Name: "y", Noticed: []string{"b.first"}}}
	s := series{experiments: experiments(defects, madeUp, onlyNamed), sideBySide: 1, again: true, out: new(bytes.Buffer)}
	ctx, interrupt := context.WithCancel(t.Context())
	ran := func() []string {
		content, _ := os.ReadFile(filepath.Join(prepared, "ran"))
		return strings.Fields(string(content))
	}
	go func() {
		defer interrupt()
		for deadline := time.Now().Add(10 * time.Second); len(ran()) < 3 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond) // other processes write the file, and nothing tells when
		}
	}()
	g.Expect(s.judge(ctx, l)).To(HaveLen(2), "what was interrupted was not judged")

	layOut(t, prepared, "y", 1, "b.first")
	verdicts := s.judge(t.Context(), l)
	g.Expect(verdicts).To(HaveLen(3))
	g.Expect(conclude(verdicts, namedBy(verdicts), nil).holds()).To(BeTrue())
	g.Expect(ran()).To(HaveExactElements("none", "x", "y", "y"), "only what was not judged is run again")

	g.Expect(os.Remove(l.path("runner"))).To(Succeed())
	g.Expect(os.WriteFile(l.path("runner"), fmt.Appendf(nil, fakeRunner, prepared), 0o755)).To(Succeed())
	g.Expect(s.judge(t.Context(), l)).To(HaveLen(3))
	g.Expect(ran()[4:]).To(HaveExactElements("none", "x", "y"), "another runner judges again")
}

func TestWhatMostlyWaitsCostsNoTime(t *testing.T) {
	g := NewWithT(t)
	planned := experiments([]Defect{
		{Name: "slow", Noticed: []string{"a.one.slow"}}, {Name: "custom", Noticed: []string{"a.one.custom"}},
		{Name: "x", Noticed: []string{"b.first"}}, {Name: "y", Noticed: []string{"b.first"}},
	}, madeUp, onlyNamed)[1:]
	s := series{experiments: planned, sideBySide: 1}
	g.Expect(s.expected(planned)).To(Equal(100*time.Second), "two beside two others of which one comes after the other")
	g.Expect(s.expected(planned[2:])).To(Equal(40 * time.Second))
	ended := []verdict{{experiment: planned[0], took: 200 * time.Second}}
	g.Expect(s.left(ended)).To(Equal(110*time.Second), "all takes twice as long as expected")
}
