package scenarios

import (
	"context"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
)

// Operator is about objects that an operator reconciles. Clients share few objects, so that names are used again.
var Operator = &exploration.Scenario{
	Name: "operator", Topic: "(the operator of --resource)", Properties: checks.Operators,
	Help: "Scenario operator\nis about the operator of --resource: clients create, change, delete and recreate objects, hold them by finalizers, " +
		"and delete the children and the namespace, and the operator must release what is deleted, and serve what is not. " +
		"With --controller and --disruptive it is restarted, too.",
	Operator: true, Namespaces: 1, Objects: 8, Operations: 24,
	Draw: drawForOperator, Apart: deletesNamespace, Begin: meetOperator, Act: actOnOperated, Settle: settleOperator,
}

// ofOperator are the choices for objects that an operator reconciles. Every delete requires a uid, so that it is known which objects clients deleted.
var ofOperator = []generate.Choice{
	{Weight: 80, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change = model.Create, model.Change{Value: d.Value()}
		if d.OneIn(3) {
			i.Change.Finalizers = new(generate.One(d, model.NamesOf(finalizers[0]), model.NamesOf(finalizers...)))
		}
	}},
	{Weight: 40, Draw: func(d *drawer, i *intent) { i.Verb, i.Change = model.Patch, model.Change{Value: d.Value()} }},
	{Weight: 16, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change, i.UID, i.ResourceVersion = model.Update, model.Change{Value: d.Value()}, true, true
	}},
	{Weight: 50, Draw: func(d *drawer, i *intent) { i.Verb, i.UID, i.Policy = model.Delete, true, d.Policy() }},
	{Weight: 24, Draw: release},
	{Weight: 10, Draw: get},
	{Weight: 14, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Part = model.Delete, 1+d.IntN(3)
		if d.OneIn(3) {
			i.Verb, i.Change = model.Patch, model.Change{Value: d.Value()}
		}
	}},
	{Weight: 4, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Down = model.Restart, time.Duration(d.IntN(longestDown))*time.Millisecond
	}},
	{Weight: 1, Draw: func(_ *drawer, i *intent) { i.Verb, i.Namespace = model.Delete, true }},
}

// longestDown is the longest time for which an operator is stopped, in milliseconds.
const longestDown = 300

// drawForOperator draws the operation that follows others. Some creates follow a delete of that name at once, which the operator may not have
// noticed, and some changes a create.
func drawForOperator(d *drawer, before generate.Program) intent {
	drawn, last := d.Choose(ofOperator), intent{}
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	switch isPlain := last.Part == 0 && !last.Namespace; {
	case isPlain && last.Verb == model.Delete && d.OneIn(2):
		return intent{Verb: model.Create, Object: last.Object, Change: model.Change{Value: d.Value()}}
	case last.Verb == model.Create && d.OneIn(4):
		return intent{Verb: model.Patch, Object: last.Object, Change: model.Change{Value: d.Value()}}
	}
	return drawn
}

// deletesNamespace reports whether a program deletes the namespace of the objects.
func deletesNamespace(programs []generate.Program) bool {
	return slices.ContainsFunc(programs, func(program generate.Program) bool {
		return slices.ContainsFunc(program, func(i intent) bool { return i.Namespace })
	})
}

// actOnOperated carries out an intent about an object, its children, its namespace or the operator.
func actOnOperated(ctx context.Context, a *clients.Actor, i intent) error {
	switch {
	case i.Verb == model.Restart && a.Restart == nil, i.Namespace && a.Homes == nil:
		return nil
	case i.Verb == model.Restart:
		return a.Record(history.Operator, i.Verb, func() error { return a.Restart(ctx, i.Down) })
	case i.Namespace:
		return actInNamespaces(ctx, a, i)
	case i.Part > 0:
		return actOnChild(ctx, a, i)
	case i.Release:
		return releaseOwn(ctx, a, i)
	}
	return clients.Do(ctx, a, i)
}

// actOnChild carries out an intent about a child, if there is one.
func actOnChild(ctx context.Context, a *clients.Actor, i intent) error {
	children := a.Children(a.Names[i.Object])
	if len(children) == 0 {
		return nil
	}
	child := children[(i.Part-1)%len(children)]
	return a.Send(ctx, clients.About(watching.ChildName(child), child, model.Operation{Verb: i.Verb, UID: string(child.GetUID()), Change: i.Change}))
}

// releaseOwn removes the finalizers of the run from the version that the client reads, as a careful second operator does.
func releaseOwn(ctx context.Context, a *clients.Actor, i intent) error {
	if err := clients.Do(ctx, a, intent{Verb: model.Get, Object: i.Object}); err != nil {
		return err
	}
	held := a.Seen(a.Names[i.Object]).Finalizers
	if model.Own(held) == "" {
		return nil
	}
	left := held.Without(model.Own(held).List()...)
	return clients.Do(ctx, a, intent{Verb: model.Patch, Object: i.Object, ResourceVersion: true, Change: model.Change{Finalizers: &left}})
}
