package scenarios

import (
	"slices"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
)

// Objects is about the life of a few objects, and what lists and watches show of it. Clients share few objects, so that they meet.
var Objects = &exploration.Scenario{
	Name: "objects", Topic: "(requests, lists and watches)", Properties: checks.Objects,
	Objects: 3, Operations: 40, Stale: true, Draw: drawAfter, Act: clients.Do,
}

// finalizers are those that objects may have, and states the values of their label.
var (
	finalizers = []string{clients.HeldBy, "b"}
	states     = []string{"", watching.Label, "y"}
)

// ofObjects are the choices for a few objects. They must live long enough to be held and released, and end often enough to be new.
var ofObjects = []generate.Choice{
	{Weight: 14, Draw: func(d *drawer, i *intent) { i.Verb, i.Change, i.DryRun = model.Create, content(d), d.OneIn(15) }},
	{Weight: 10, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Read = model.Get, generate.One(d, generate.Recent, generate.Recent, generate.Any, generate.NotOlderThan)
	}},
	{Weight: 12, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change, i.DryRun = model.Update, change(d), d.OneIn(15)
		i.UID, i.ResourceVersion = true, !d.OneIn(4)
	}},
	{Weight: 16, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change, i.ResourceVersion, i.DryRun = model.Patch, change(d), d.OneIn(3), d.OneIn(15)
	}},
	{Weight: 6, Draw: func(d *drawer, i *intent) { i.Verb, i.Change.Value = model.Apply, d.Value() }},
	{Weight: 3, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID, i.ResourceVersion = model.UpdateStatus, true, true
		if !d.Status {
			i.Verb, i.UID, i.ResourceVersion, i.Change = model.Patch, false, false, model.Change{Value: d.Value()}
		}
	}},
	{Weight: 16, Draw: func(d *drawer, i *intent) {
		i.Verb, i.DryRun, i.UID, i.ResourceVersion = model.Delete, d.OneIn(12), d.OneIn(3), d.OneIn(5)
		i.Policy = d.Policy()
		if d.OneIn(6) {
			i.Grace = new(int64(d.IntN(3)))
		}
	}},
	{Weight: 3, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Object, i.Label, i.DryRun, i.Policy = model.Delete, -1, generate.One(d, states...), d.OneIn(8), d.Policy()
	}},
	{Weight: 10, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Object, i.Label = model.Select, -1, generate.One(d, states...)
		i.Read = generate.One(d, generate.Recent, generate.Recent, generate.Recent, generate.Any, generate.NotOlderThan, generate.Exact)
		if i.Read == generate.Recent && d.OneIn(3) {
			i.Limit = 1
		}
	}},
}

// drawAfter draws the operation that follows others. Some deletes follow a write at once. A server that decides by a cache misses what was written,
// by a deletecollection after a create, or by a delete after a write of finalizers. A delete with the new resourceVersion meets the writes of other
// clients between its check and its removal.
func drawAfter(d *drawer, before generate.Program) intent {
	drawn, last := d.Choose(ofObjects), intent{}
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	if last.DryRun || !slices.Contains(writes, last.Verb) {
		return drawn
	}
	switch d.IntN(6) {
	case 0:
		if last.Verb == model.Create {
			return intent{Verb: model.Delete, Object: -1, Label: *last.Change.Label}
		}
	case 1:
		finalizers := last.Change.Finalizers != nil && *last.Change.Finalizers != ""
		return intent{Verb: model.Delete, Object: last.Object, ResourceVersion: !finalizers}
	}
	return drawn
}

// writes are the writes of one object after which it exists.
var writes = []model.Verb{model.Create, model.Update, model.Patch, model.Apply}

// content is that of a new object.
func content(d *drawer) model.Change {
	return model.Change{Value: d.Value(), Label: new(generate.One(d, states...)), Finalizers: someFinalizers(d), Owners: owners(d)}
}

// change is what a write changes: one of the fields, or several.
func change(d *drawer) model.Change {
	change := model.Change{}
	switch d.IntN(6) {
	case 0, 1:
		change.Finalizers = someFinalizers(d)
	case 2:
		change.Label = new(generate.One(d, states...))
	case 3:
		change.Owners = owners(d)
	case 4:
		change = content(d)
	}
	if change.Finalizers == nil || d.OneIn(2) {
		change.Value = d.Value()
	}
	return change
}

// someFinalizers are none for most objects, so that they come to their end.
func someFinalizers(d *drawer) *model.Names {
	var names []string
	for _, finalizer := range finalizers {
		if d.OneIn(3) {
			names = append(names, finalizer)
		}
	}
	return new(model.NamesOf(names...))
}

func owners(d *drawer) *model.Names {
	if d.Owner == "" || !d.OneIn(4) {
		return new(model.Names(""))
	}
	return new(model.NamesOf(model.Owner{Name: d.Owner}.String()))
}
