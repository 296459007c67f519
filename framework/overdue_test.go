package framework

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

func TestOverdue(t *testing.T) {
	for name, test := range map[string]struct {
		// trueAt is the turn in which the wait comes true; 0 for never.
		trueAt int
		// work is the number of controllers, and busy is set when they do not finish.
		work int
		busy bool
		// want is the result, and given how often there was work.
		want  bool
		given int
	}{
		"at once":                 {1, 1, false, true, 1},
		"in a later turn":         {3, 2, false, true, 3},
		"in the last turn":        {turns, 1, false, true, turns},
		"too late":                {turns + 1, 1, false, false, turns},
		"never":                   {0, 1, false, false, turns},
		"without controllers":     {1, 0, false, false, 1},
		"behind a busy one":       {1, 1, true, true, 1},
		"never, with a stuck one": {0, 1, true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, given := NewWithT(t), 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			last := &overdue{check: func() bool { return test.trueAt > 0 && given >= test.trueAt }}
			give := func(context.Context) (all []work) {
				given++
				for range test.work {
					all = append(all, func(context.Context) bool { return !test.busy })
				}
				return all
			}

			g.Expect(last.recovers(ctx, time.Millisecond, give)).To(Equal(test.want))
			g.Expect(given).To(Equal(test.given))
		})
	}
}

func TestOverdue_OtherWait(t *testing.T) {
	g := NewWithT(t)
	object := fixtures.ConfigMap("object")
	cluster := &Cluster{spec: &spec{}}
	history := &History{journal: &journal.Journal{}, subjects: []*Object{object}, spec: cluster.spec}

	message := HaveObserved(Deleted(object)).FailureMessage(history)
	g.Expect(cluster.overdue.Load().message).To(Equal(message))
	g.Expect(cluster.recovers(t.Context(), "Timed out after 30s.\nExpected another thing")).To(BeFalse())
	g.Expect(cluster.overdue.Load()).To(BeNil())

	message = Awaited(cluster, func() (int, error) { return 1, nil }, Equal(2)).FailureMessage(1)
	g.Expect(cluster.overdue.Load().check()).To(BeFalse())
	g.Expect(cluster.recovers(t.Context(), "No future change is possible.  Bailing out early after 1s.\n"+message)).To(BeFalse())
}
