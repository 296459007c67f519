package generate_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

var options = generate.Options{
	Clients: 4, Operations: 500, Objects: 3, Finalizers: []string{"a", "b"}, Labels: []string{"x"}, Owner: "owner", GarbageCollector: true, Status: true,
}

func TestPrograms_Reproducible(t *testing.T) {
	g := NewWithT(t)
	first := generate.Programs(7, options)

	g.Expect(generate.Programs(7, options)).To(Equal(first))
	g.Expect(generate.Programs(8, options)).NotTo(Equal(first))
	g.Expect(first[0]).NotTo(Equal(first[1]))
}

func TestPrograms_EveryOperation(t *testing.T) {
	g := NewWithT(t)
	drawn, values := map[model.Verb]int{}, map[string]int{}
	for _, program := range generate.Programs(1, options) {
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
	without := options
	without.GarbageCollector = false
	for _, program := range generate.Programs(1, without) {
		for _, intent := range program {
			g.Expect(intent.Policy).To(BeElementOf("", model.PolicyBackground))
		}
	}
}

func TestPrograms_DeleteUID(t *testing.T) {
	for name, options := range map[string]generate.Options{
		"owners": {Clients: 2, Operations: 500, Objects: 8, Finalizers: []string{"a"}, GarbageCollector: true, Graph: true},
		"pods":   {Clients: 2, Operations: 500, Objects: 3, Finalizers: []string{"a"}, Pods: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			programs, deletes, releases := generate.Programs(1, options), 0, 0
			for _, program := range programs {
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
			g.Expect(generate.Check(programs, options.Objects)).To(Succeed())
		})
	}
}
