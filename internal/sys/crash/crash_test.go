package crash

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// stumble panics like code with a defect.
func stumble() error {
	var nothing *Error
	return errors.New(nothing.during)
}

func TestCaught_Panic(t *testing.T) {
	g := NewWithT(t)
	err := Caught("tear down", stumble)
	g.Expect(err).To(MatchError(And(
		HavePrefix("tear down: panic in the runner: runtime error: "), Not(ContainSubstring("\n")))))

	err = Caught("set up", func() error { panic("one\ntwo") })
	g.Expect(err).To(MatchError(And(ContainSubstring("panic in the runner: one"), Not(ContainSubstring("\n")))))
}

func TestCaught_NoPanic(t *testing.T) {
	g := NewWithT(t)
	refused := errors.New("refused")
	g.Expect(Caught("set up", func() error { return nil })).To(Succeed())
	g.Expect(Caught("set up", func() error { return refused })).To(BeIdenticalTo(refused))
}

func TestStacks(t *testing.T) {
	g := NewWithT(t)
	one, other := Caught("set up", stumble), Caught("tear down", stumble)
	stacks := Stacks(errors.Join(errors.New("refused"), fmt.Errorf("on a cluster: %w: %w", errors.New("left"), one), other))
	g.Expect(stacks).To(HaveLen(2))
	g.Expect(string(stacks[0])).To(ContainSubstring("crash.stumble"))
	g.Expect(Stacks(errors.New("refused"))).To(BeEmpty())
	g.Expect(Stacks(nil)).To(BeEmpty())
}

func TestInParallel_Panic(t *testing.T) {
	g := NewWithT(t)
	var called atomic.Int32
	err := Caught("tear down", func() error {
		InParallel(2, 5, func(i int) {
			called.Add(1)
			if i == 3 {
				_ = stumble()
			}
		})
		return nil
	})

	g.Expect(err).To(MatchError(HavePrefix("tear down: panic in the runner: runtime error: ")))
	g.Expect(called.Load()).To(Equal(int32(5)))
	g.Expect(string(Stacks(err)[0])).To(ContainSubstring("crash.stumble"))
}
