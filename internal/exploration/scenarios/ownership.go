package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
	"github.com/deletion-conformance/deletion-conformance/model/history/ownership"
)

const (
	// graphObjects is the number of objects that own each other. Graphs have more objects and longer programs, because the end of each round waits for
	// the garbage collector. Few objects have the name of one that finalizers held, to which the properties of ownership do not apply.
	graphObjects = 24
	// canaries is the number of dependents of the barrier's owner.
	canaries = 3
	// collectionTime is how long the garbage collector may take to finish what clients have begun, on a fast cluster. It retries after
	// conflicts.
	collectionTime = 30 * time.Second
)

// Ownership is about objects that own each other, and what the garbage collector does with them.
var Ownership = &exploration.Scenario{
	Name: "ownership", Topic: "(the garbage collector)", Properties: checks.Ownership,
	Help: "In scenario ownership the objects own each other, and the garbage\n" +
		"collector must delete, keep and orphan what owner references and propagation policies require.",
	Features: []v1alpha1.Feature{v1alpha1.GC},
	Objects:  graphObjects, Barrier: 1 + canaries, Operations: 60,
	Draw: chosen(inGraphs), Begin: createOwners, Act: actOnGraph, Settle: settleGraph,
}

// Names of owners in a Change that are not among the round's objects: a cluster-scoped object, and one in another namespace.
const (
	clusterOwner   = "cluster-scoped"
	elsewhereOwner = "elsewhere"
)

// inGraphs are the choices for objects that own each other. Every delete requires a uid, so that it is known which objects clients deleted.
var inGraphs = []generate.Choice{
	{Weight: 48, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change = model.Create, model.Change{Value: d.Value(), Owners: ownersIn(d, i.Object)}
		hold(d, i, 4)
	}},
	{Weight: 12, Draw: func(d *drawer, i *intent) { i.Verb, i.Change.Owners = model.Patch, ownersIn(d, i.Object) }},
	{Weight: 10, Draw: release},
	{Weight: 20, Draw: func(d *drawer, i *intent) {
		i.Verb, i.UID, i.Policy = model.Delete, true, d.Policy()
		if d.OneIn(4) { // few of these deletes meet a dependent that blocks
			i.Policy = model.PolicyForeground
		}
	}},
	{Weight: 6, Draw: get},
	{Weight: 1, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Object, i.ClusterOwner, i.UID, i.Policy = model.Delete, 0, true, true, d.Policy()
	}},
}

// ownersIn are up to three other objects, which may not exist, may be cluster-scoped, or in another namespace. The first objects own more than
// others, so that some have several dependents.
func ownersIn(d *drawer, object int) *model.Names {
	var owners []string
	for range d.IntN(4) {
		if d.OneIn(8) {
			owners = append(owners, model.Owner{Name: generate.One(d, clusterOwner, clusterOwner, elsewhereOwner)}.String())
			continue
		}
		if owner := min(d.IntN(d.Objects), d.IntN(d.Objects)); owner != object {
			owners = append(owners, generate.OwnerAt(owner, d.OneIn(2)))
		}
	}
	return new(model.NamesOf(owners...))
}

// createOwners creates the cluster-scoped owner of a round, and before the first one an object in another namespace, unless the run may not or the
// resource is cluster-scoped.
func createOwners(ctx context.Context, d *exploration.Driver) error {
	settings := d.Settings
	d.Owners[clusterOwner] = nil
	if !settings.Shared && settings.Unsupported[v1alpha1.Admin] == "" {
		role := fixtures.ClusterRole(fmt.Sprintf("%s-r%d-owner", settings.Run, d.Current.Number))
		role.SetLabels(settings.Labels())
		d.Owners[clusterOwner] = createdOrNil(ctx, d, role)
	}
	if _, tried := d.Owners[elsewhereOwner]; tried {
		return nil
	}
	d.Owners[elsewhereOwner] = nil
	if settings.Shared || settings.Unsupported[v1alpha1.Namespace] != "" || d.Collection.Namespace == "" {
		return nil
	}
	namespace := fixtures.Namespace(settings.Run + "-elsewhere")
	namespace.SetLabels(settings.Labels())
	if createdOrNil(ctx, d, namespace) != nil {
		object := clients.Named(d.Manifest, d.Name("elsewhere"), settings.Labels())
		object.SetNamespace(namespace.GetName())
		d.Owners[elsewhereOwner] = createdOrNil(ctx, d, object)
	}
	return nil
}

// createdOrNil creates an object; nil if that is refused.
func createdOrNil(ctx context.Context, d *exploration.Driver, object *client.Object) *client.Object {
	response := d.Own.Create(ctx, object)
	if response.Err != nil {
		return nil // the body is a Status
	}
	return response.Object
}

// actOnGraph carries out an intent, unless it is about a cluster-scoped owner that the run may not create.
func actOnGraph(ctx context.Context, a *clients.Actor, i intent) error {
	if !i.ClusterOwner {
		return clients.Do(ctx, a, i)
	}
	owner := a.Owners[clusterOwner]
	if owner == nil {
		return nil
	}
	return a.Send(ctx, clients.About(owner.GetName(), owner, model.Operation{Verb: i.Verb, Policy: i.Policy, UID: string(owner.GetUID())}))
}

// removeClusterOwner deletes the cluster-scoped owner of the round until it is gone. A finalizer of another policy does not hold it.
func removeClusterOwner(ctx context.Context, d *exploration.Driver) error {
	owner := d.Owners[clusterOwner]
	if owner == nil {
		return nil
	}
	if gone, err := d.Remove(ctx, generate.Program{
		{Verb: model.Delete, ClusterOwner: true, Policy: model.PolicyBackground}, {Verb: model.Get, ClusterOwner: true},
	}); gone || err != nil {
		return err
	}
	return fmt.Errorf("%w: ClusterRole %q still exists after %d deletes", clients.ErrSkipped, owner.GetName(), exploration.Attempts)
}

// settleGraph releases the round's objects, deletes the cluster-scoped owner, and waits until the garbage collector has nothing left to do: until it
// has also deleted the dependents of an owner that is deleted last. Then it waits for the settling time, in which a faulty collector could still
// act. It adds the resourceVersion at the end, and what the watches have delivered up to it.
func settleGraph(ctx context.Context, d *exploration.Driver, whole *history.History) error {
	if err := errors.Join(d.Release(ctx), removeClusterOwner(ctx, d)); err != nil {
		return err
	}
	if owner := d.Owners[clusterOwner]; owner != nil {
		whole.ClusterOwner = &model.Owner{Name: owner.GetName(), UID: string(owner.GetUID())}
	}
	program := generate.Program{{Verb: model.Create, Object: graphObjects}}
	for i := range canaries {
		program = append(program, intent{
			Verb: model.Create, Object: graphObjects + 1 + i, Change: model.Change{Owners: new(model.Names(generate.OwnerAt(graphObjects, false)))},
		})
	}
	program = append(program, intent{Verb: model.Delete, Object: graphObjects, UID: true, Policy: model.PolicyBackground})
	if err := d.Run(ctx, d.Last, program); err != nil {
		return err
	}
	written, err := d.WriteQuiet(ctx)
	if err != nil {
		return err
	}
	watch := d.Watchers[0]
	watch.Await(ctx, d.Patience(collectionTime), func() bool {
		return watch.HasDelivered(written) && len(ownership.Uncollected(watch.Live)) == 0
	})
	client.Wait(ctx, d.Settings.SettlingTime())
	whole.Settled, whole.Streams, err = d.Cut(ctx)
	return err
}
