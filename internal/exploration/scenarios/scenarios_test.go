package scenarios

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

// optionsOf draw long programs of a scenario.
func optionsOf(scenario *exploration.Scenario) generate.Options {
	return generate.Options{
		Clients: 4, Operations: 500, Objects: scenario.Objects, Owner: "owner", GarbageCollector: true, Status: true, Draw: scenario.Draw,
	}
}

func TestPrograms_Reproducible(t *testing.T) {
	for _, scenario := range All {
		t.Run(scenario.Name, func(t *testing.T) {
			g := NewWithT(t)
			first := generate.Programs(7, optionsOf(scenario))

			g.Expect(generate.Programs(7, optionsOf(scenario))).To(Equal(first))
			g.Expect(generate.Programs(8, optionsOf(scenario))).NotTo(Equal(first))
			g.Expect(first[0]).NotTo(Equal(first[1]))
			g.Expect(generate.Check(first, scenario.Objects)).To(Succeed())
		})
	}
}

func TestPrograms_EveryOperation(t *testing.T) {
	g := NewWithT(t)
	drawn, values := map[model.Verb]int{}, map[string]int{}
	for _, program := range generate.Programs(1, optionsOf(Objects)) {
		for _, intent := range program {
			drawn[intent.Verb]++
			if intent.Change.Value != nil {
				values[*intent.Change.Value]++
			}
		}
	}

	for _, verb := range []model.Verb{
		model.Get, model.Create, model.Update, model.Patch, model.Apply, model.UpdateStatus, model.Delete, model.Select,
	} {
		g.Expect(drawn[verb]).To(BeNumerically(">", 20), string(verb))
	}
	g.Expect(values).To(HaveEach(1), "each write shows in what is read later")
}

func TestPrograms_NoGarbageCollector(t *testing.T) {
	g := NewWithT(t)
	without := optionsOf(Objects)
	without.GarbageCollector = false
	for _, program := range generate.Programs(1, without) {
		for _, intent := range program {
			g.Expect(intent.Policy).To(BeElementOf("", model.PolicyBackground))
		}
	}
}

func TestPrograms_DeleteUID(t *testing.T) {
	for _, scenario := range []*exploration.Scenario{Ownership, Grace, Nodes} {
		t.Run(scenario.Name, func(t *testing.T) {
			g := NewWithT(t)
			deletes, releases := 0, 0
			for _, program := range generate.Programs(1, optionsOf(scenario)) {
				for _, intent := range program {
					if intent.Verb == model.Delete {
						deletes++
						g.Expect(intent.UID).To(BeTrue())
					}
					if intent.Release {
						releases++
					}
				}
			}
			g.Expect(deletes).To(BeNumerically(">", 100))
			g.Expect(releases).To(BeNumerically(">", 50))
		})
	}
}
