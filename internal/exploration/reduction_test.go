package exploration

import (
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
)

// reducing reduces three programs that break a property when something holds for what is left.
func reducing(breaks func([]generate.Program) bool) *reduction {
	get, update, refuse, restart := generate.Intent{Verb: model.Get}, generate.Intent{Verb: model.Update}, generate.Intent{Fault: "refuse"}, generate.Intent{Fault: "restart"}
	property := ownership.Collected
	return &reduction{
		failure: &Failure{Violation: history.Violation{Property: property}, Programs: []generate.Program{
			{get, update, refuse, get}, {get, restart, get, get}, {refuse, get},
		}},
		end: time.Now().Add(time.Minute),
		run: func(programs []generate.Program) (*history.History, []history.Violation, error) {
			other := history.Violation{Property: reads.WatchOrder}
			if breaks(programs) {
				return &history.History{}, []history.Violation{other, {Property: property}}, nil
			}
			return nil, []history.Violation{other}, nil
		},
	}
}

func updates(programs []generate.Program) bool {
	return slices.ContainsFunc(slices.Concat(programs...), func(intent generate.Intent) bool { return intent.Verb == model.Update })
}

func (r *reduction) reduce() {
	r.leaveOutFaults(r.end)
	r.leaveOutOperations()
}

func TestReduction_WithoutFaults(t *testing.T) {
	g, r := NewWithT(t), reducing(updates)
	r.reduce()
	g.Expect(r.failure.Programs).To(Equal([]generate.Program{{{Verb: model.Update}}, {}, {}}))
	g.Expect(r.failure.Needed).To(BeEmpty())
	g.Expect(r.failure.History).NotTo(BeNil())
}

func TestReduction_NeededFault(t *testing.T) {
	g := NewWithT(t)
	r := reducing(func(programs []generate.Program) bool {
		return updates(programs) && slices.Contains(injection.NamesIn(programs), "refuse")
	})
	r.reduce()
	g.Expect(slices.Concat(r.failure.Programs...)).To(ConsistOf(generate.Intent{Verb: model.Update}, generate.Intent{Fault: "refuse"}))
	g.Expect(r.failure.Needed).To(Equal([]string{"refuse"}))
}

func TestReduction_Chance(t *testing.T) {
	g, runs := NewWithT(t), 0
	r := reducing(func(programs []generate.Program) bool {
		runs++
		return updates(programs) && runs%attemptsFor == 0
	})
	r.leaveOutFaults(r.end)
	g.Expect(injection.NamesIn(r.failure.Programs)).To(BeEmpty(), "the last attempt counts")
	g.Expect(r.failure.Attempts).To(Equal(attemptsFor))
}

func TestReduction_Ends(t *testing.T) {
	t.Run("time is over", func(t *testing.T) {
		g, r := NewWithT(t), reducing(updates)
		r.end = time.Now().Add(-time.Second)
		r.reduce()
		g.Expect(r.failure.Attempts).To(BeZero())
		g.Expect(r.failure.Needed).To(BeEmpty(), "it is not known")
	})
	t.Run("a round fails", func(t *testing.T) {
		g, r := NewWithT(t), reducing(updates)
		r.run = func([]generate.Program) (*history.History, []history.Violation, error) {
			return nil, nil, errors.New("connection refused")
		}
		r.reduce()
		g.Expect(r.failure.Attempts).To(Equal(1))
		g.Expect(r.failure.Needed).To(BeEmpty())
		g.Expect(r.failure.Programs[0]).To(HaveLen(4))
	})
}
