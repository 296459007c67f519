package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

func TestDuration(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{Slow: true})
	g.Expect(err).NotTo(HaveOccurred())
	rows := 0
	for _, behavior := range made.Catalog {
		if behavior.Duration() != 0 {
			rows++
			g.Expect(behavior.Duration()).To(And(BeNumerically(">=", time.Second), BeNumerically("<", 5*time.Minute)), behavior.ID)
		}
	}
	g.Expect(rows).To(BeNumerically(">", 100), "go run ./hack/fixtures out/report.json writes how long behaviors take")
}
