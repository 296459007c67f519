package scenarios

import (
	"context"
	"errors"
	"maps"
	"slices"
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
)

// A round deletes several namespaces at once, as each takes seconds.
const (
	namespaces = 6
	residents  = 3
)

// Namespaces is about objects whose namespaces are deleted.
var Namespaces = &exploration.Scenario{
	Name: "namespaces", Properties: checks.Namespaces,
	Help:     "Scenario namespaces deletes namespaces\nwhile objects are created, held and released in them.",
	Features: []v1alpha1.Feature{v1alpha1.KCM, v1alpha1.Namespace}, Namespaces: namespaces, Objects: namespaces * residents, Operations: 36,
	NamespacesMayEnd: true, Draw: chosen(inNamespaces), Act: actInNamespaces, Settle: terminate,
}

// inNamespaces are the choices for objects whose namespaces are deleted. Every delete of an object requires a uid, so that it is known which
// objects clients deleted.
var inNamespaces = []generate.Choice{
	{Weight: 50, Draw: func(d *drawer, i *intent) {
		i.Verb, i.Change = model.Create, model.Change{Value: d.Value()}
		hold(d, i, 2)
	}},
	{Weight: 10, Draw: release},
	{Weight: 16, Draw: func(d *drawer, i *intent) { i.Verb, i.Change = model.Patch, model.Change{Value: d.Value()} }},
	{Weight: 12, Draw: func(_ *drawer, i *intent) { i.Verb, i.UID = model.Delete, true }},
	{Weight: 8, Draw: get},
	{Weight: 4, Draw: func(_ *drawer, i *intent) { i.Verb, i.Namespace = model.Delete, true }},
}

// actInNamespaces carries out an intent, which may be about the namespace of an object.
func actInNamespaces(ctx context.Context, a *clients.Actor, i intent) error {
	if !i.Namespace {
		return clients.Do(ctx, a, i)
	}
	home := a.Homes[a.Names[i.Object]]
	return a.Send(ctx, clients.About(home, fixtures.Namespace(home), model.Operation{Verb: i.Verb}))
}

// terminationTime is how long the namespace controller may take to remove namespaces in which nothing is held any longer, on a fast cluster.
// After finalizers have kept it from that it waits for 8 s before it tries again.
const terminationTime = time.Minute

// retryTime is within what time the namespace controller looks again at a namespace whose content was held: at 5 s as its conditions have
// changed, and 8 s after that.
const retryTime = 16 * time.Second

// terminate deletes the round's namespaces, waits until only held objects keep them, releases these, waits until the namespaces are gone, tries
// to create an object in each, and adds the events of their watch. Rounds release at different moments of the controller's retries.
func terminate(ctx context.Context, d *exploration.Driver, whole *history.History) error {
	var deletes, late generate.Program
	for i := range namespaces {
		deletes = append(deletes, intent{Verb: model.Delete, Object: i, Namespace: true})
		late = append(late, intent{Verb: model.Get, Object: i, Namespace: true}, intent{Verb: model.Create, Object: i})
	}
	// twice, as the response to the first may be lost
	if err := d.Run(ctx, d.Last, slices.Concat(deletes, deletes)); err != nil {
		return err
	}
	awaitNamespaces(ctx, d, func(namespace string) bool { return d.Namespaces.Held[namespace] })
	client.Wait(ctx, time.Duration(d.Current.Number)*3*time.Second%retryTime)
	if err := d.Release(ctx); err != nil {
		return err
	}
	awaitNamespaces(ctx, d, func(string) bool { return false })
	whole.Namespaces = d.Namespaces.Events()
	return errors.Join(d.Run(ctx, d.Last, late), getControllersObjects(ctx, d))
}

// getControllersObjects gets what controllers create in every namespace, and create again when it is deleted.
func getControllersObjects(ctx context.Context, d *exploration.Driver) error {
	account, certificates := fixtures.ServiceAccount(), fixtures.ConfigMap("kube-root-ca.crt")
	account.SetName("default")
	for _, home := range slices.Compact(slices.Sorted(maps.Values(d.Current.Homes))) {
		for _, object := range []*client.Object{account, certificates} {
			object.SetNamespace(home)
			name := home + "/" + object.GetName()
			d.Current.Homes[name] = home
			if err := d.Last.Send(ctx, clients.About(name, object.DeepCopy(), model.Operation{Verb: model.Get})); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitNamespaces waits until something holds for each namespace of the round that is not gone, within the time for their termination.
func awaitNamespaces(ctx context.Context, d *exploration.Driver, holds func(namespace string) bool) {
	d.Namespaces.Await(ctx, d.Patience(terminationTime), func() bool {
		return !slices.ContainsFunc(d.Current.Names, func(name string) bool {
			home := d.Current.Homes[name]
			_, lives := d.Namespaces.Live[home]
			return lives && !holds(home)
		})
	})
}
