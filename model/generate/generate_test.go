package generate_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
)

func TestChoose_Weights(t *testing.T) {
	g := NewWithT(t)
	choices := []generate.Choice{
		{Weight: 1, Draw: func(_ *generate.Drawer, i *generate.Intent) { i.Verb = model.Create }},
		{Weight: 0, Draw: func(_ *generate.Drawer, i *generate.Intent) { i.Verb = model.Update }},
		{Weight: 9, Draw: func(_ *generate.Drawer, i *generate.Intent) { i.Verb = model.Delete }},
	}
	drawn, objects := map[model.Verb]int{}, map[int]int{}
	for _, program := range generate.Programs(1, generate.Options{
		Clients: 2, Operations: 500, Objects: 2, Draw: func(d *generate.Drawer, _ generate.Program) generate.Intent { return d.Choose(choices) },
	}) {
		for _, intent := range program {
			drawn[intent.Verb]++
			objects[intent.Object]++
		}
	}

	g.Expect(drawn).To(HaveLen(2))
	g.Expect(drawn[model.Create]).To(BeNumerically("~", 100, 40))
	g.Expect(objects).To(And(HaveLen(2), HaveEach(BeNumerically("~", 500, 100))))
}

func TestPrograms_Faults(t *testing.T) {
	g := NewWithT(t)
	options := generate.Options{
		Clients: 4, Operations: 1000, Objects: 2, Draw: func(*generate.Drawer, generate.Program) generate.Intent { return generate.Intent{Verb: model.Get} },
		Faults: []generate.Fault{{Name: "often", PerRound: 400}, {Name: "rarely", PerRound: 40}},
	}
	drawn := map[string]int{}
	for _, program := range generate.Programs(1, options) {
		g.Expect(program).To(HaveLen(1000), "a fault takes the place of an operation")
		for _, intent := range program {
			drawn[intent.Fault]++
			g.Expect(intent.Verb == "").To(Equal(intent.Fault != ""))
		}
	}
	g.Expect(drawn["often"]).To(BeNumerically("~", 400, 60))
	g.Expect(drawn["rarely"]).To(BeNumerically("~", 40, 20))
	g.Expect(generate.Check(generate.Programs(1, options), 2)).To(Succeed())
}

func TestPrograms_SameWithoutFaults(t *testing.T) {
	g := NewWithT(t)
	options := generate.Options{Clients: 1, Operations: 50, Objects: 9, Draw: func(d *generate.Drawer, _ generate.Program) generate.Intent {
		return generate.Intent{Verb: model.Get, Object: d.IntN(d.Objects)}
	}}
	plain := generate.Programs(1, options)
	options.Faults = []generate.Fault{}
	g.Expect(generate.Programs(1, options)).To(Equal(plain))
	options.Faults = []generate.Fault{{Name: "never"}}
	g.Expect(generate.Programs(1, options)).NotTo(Equal(plain), "a choice of faults is drawn")
}

func TestCheck_Invalid(t *testing.T) {
	for name, intent := range map[string]generate.Intent{
		"unknown verb":                    {Verb: "watch"},
		"object that does not exist":      {Verb: model.Get, Object: 3},
		"list of one object":              {Verb: model.Select},
		"patch of the collection":         {Verb: model.Patch, Object: -1},
		"negative page size":              {Verb: model.Select, Object: -1, Limit: -1},
		"create of a namespace":           {Verb: model.Create, Namespace: true},
		"patch of a cluster-scoped owner": {Verb: model.Patch, ClusterOwner: true},
		"fault with a verb":               {Fault: "refuse", Verb: model.Get},
		"fault of an unknown object":      {Fault: "refuse", Object: 3},
		"fault of the collection":         {Fault: "refuse", Object: -1},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(generate.Check([]generate.Program{{intent}}, 3)).NotTo(Succeed())
		})
	}
}
