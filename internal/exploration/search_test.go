package exploration

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/reads"
	"github.com/deletion-conformance/deletion-conformance/model/history/requests"
)

func TestResult_Undecided(t *testing.T) {
	g, result := NewWithT(t), Result{}
	broken := history.Violation{Property: reads.WatchOrder}
	undecided := func(reason string) history.Violation {
		return history.Violation{Property: requests.Linearizable, Message: reason, Undecided: true}
	}

	g.Expect(result.decided([]history.Violation{undecided("first"), broken, undecided("second")})).To(Equal([]history.Violation{broken}))
	g.Expect(result.Undecided).To(Equal(map[*history.Property]Undecided{requests.Linearizable: {2, "first"}}))
}
