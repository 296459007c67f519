package workers

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

// ran returns a run of a pool on some clusters, for tests of attempts.
func ran(clusters int, ids ...string) *poolRun {
	return &poolRun{chosen: behaviors(ids...), tries: map[string]int{}, trying: map[string]time.Duration{}, givenUp: make([]int, clusters)}
}

// ended returns the report of a spec with evidence, as a worker sends it.
func ended(state types.SpecState, evidence specs.Evidence) types.SpecReport {
	spec := types.SpecReport{State: state}
	evidence.AttachTo(&spec)
	return spec
}

func TestBatchRun_Retries(t *testing.T) {
	broken := specs.Evidence{RunError: "connection reset"}
	for _, test := range []struct {
		name   string
		report types.SpecReport
		again  bool
	}{
		{"the connection to the cluster failed", ended(types.SpecStateFailed, broken), true},
		{"it failed meanwhile in another way", ended(types.SpecStatePanicked, broken), true},
		{"its time was up meanwhile", ended(types.SpecStateTimedout, broken), true},
		{"it failed", ended(types.SpecStateFailed, specs.Evidence{}), false},
		{"its time was up", ended(types.SpecStateTimedout, specs.Evidence{}), false},
		{"it held nevertheless", ended(types.SpecStatePassed, broken), false},
		{"it was skipped", ended(types.SpecStateSkipped, broken), false},
		{"it was interrupted", ended(types.SpecStateInterrupted, broken), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			b := &batchRun{poolRun: ran(1, "a", "b")}

			g.Expect(b.retries("b", test.report)).To(Equal(test.again))

			if test.again {
				g.Expect(b.untested).To(Equal(behaviors("b")))
			} else {
				g.Expect(b.untested).To(BeEmpty())
				g.Expect(b.tries).To(BeEmpty(), "a verdict is no try that came to nothing")
			}
		})
	}
}

func TestPool_Attempts(t *testing.T) {
	g := NewWithT(t)
	r := ran(2, "a")
	g.Expect(r.triesOf(0, []string{"a", "b"})).To(BeEmpty(), "where nothing was tried")
	for range maxTries - 1 {
		g.Expect(r.countAttempt(0, "a", time.Second)).To(BeTrue())
	}
	g.Expect(r.countAttempt(1, "a", time.Second)).To(BeTrue(), "another cluster counts by itself")
	g.Expect(r.triesOf(1, []string{"a", "b"})).To(Equal(map[string]int{"a": 1}), "which a worker is told")
	g.Expect(r.countAttempt(0, "a", time.Second)).To(BeFalse(), "that was the last")
	g.Expect(r.givenUp).To(Equal([]int{1, 0}))
	g.Expect(r.countAttempt(1, "b", maxTrying-time.Second)).To(BeTrue())
	g.Expect(r.countAttempt(1, "b", time.Second)).To(BeFalse(), "its attempts took too long together")
	g.Expect(r.givenUp).To(Equal([]int{1, 1}))
}

func TestPool_GivenUp(t *testing.T) {
	g := NewWithT(t)
	r := ran(2)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		for range maxTries {
			r.countAttempt(0, id, time.Second)
		}
	}
	g.Expect(r.givenUp[0]).To(Equal(maxGivenUp))
	g.Expect(r.countAttempt(0, "f", time.Second)).To(BeTrue(), "as many may be given up")
	for range maxTries {
		r.countAttempt(0, "g", time.Second)
	}
	g.Expect(r.countAttempt(0, "h", time.Second)).To(BeFalse())
	g.Expect(r.countAttempt(1, "h", time.Second)).To(BeTrue(), "on another cluster it may")
}
