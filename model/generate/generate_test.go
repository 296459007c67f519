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

func TestCheck_Invalid(t *testing.T) {
	for name, intent := range map[string]generate.Intent{
		"unknown verb":                    {Verb: "watch"},
		"object that does not exist":      {Verb: model.Get, Object: 3},
		"list of one object":              {Verb: model.Select},
		"patch of the collection":         {Verb: model.Patch, Object: -1},
		"negative page size":              {Verb: model.Select, Object: -1, Limit: -1},
		"create of a namespace":           {Verb: model.Create, Namespace: true},
		"patch of a cluster-scoped owner": {Verb: model.Patch, ClusterOwner: true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(generate.Check([]generate.Program{{intent}}, 3)).NotTo(Succeed())
		})
	}
}
