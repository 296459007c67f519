package plan_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

// A behavior that creates nothing has an empty row, so that a missing row is detected.
func TestFixtures_EveryBehavior(t *testing.T) {
	g := NewWithT(t)
	made, err := plan.Make(plan.Selection{Slow: true})
	g.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, behavior := range made.Catalog {
		if !slices.Contains(behavior.Features, v1alpha1.Controller) { // no run on an embedded cluster has a user's controller
			ids = append(ids, behavior.ID)
		}
	}
	rows := slices.Sorted(maps.Keys(environment.Fixtures()))
	g.Expect(rows).To(ConsistOf(ids), "go run ./hack/fixtures out/report.json updates the table from the report of a run of everything (--slow)")
}

func TestFixtures_OptionalKinds(t *testing.T) {
	for id, use := range environment.Fixtures() {
		for _, kind := range use.Optional {
			NewWithT(t).Expect(use.Kinds()).To(ContainElement(kind), id)
		}
	}
}
