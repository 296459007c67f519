package environment

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAttemptsOfTheSameWorkHaveTheSameID(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RunIDOf("job/1")).To(Equal(RunIDOf("job/1")))
	g.Expect(RunIDOf("job/1")).NotTo(Equal(RunIDOf("job/2")))
	g.Expect(RunIDOf("job/1")).To(MatchRegexp("^dc[" + idLetters + "]{8}$"))
	g.Expect(NewRunID()).To(MatchRegexp("^dc[" + idLetters + "]{8}$"))
}
