package exploration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// ErrSkipped is the error of a cluster that a scenario cannot explore.
var ErrSkipped = errors.New("the scenario cannot run")

// Scenario names what is explored.
type Scenario string

// The scenarios.
const (
	// Objects is about the life of a few objects, and what lists and watches show of it.
	Objects Scenario = "objects"
	// Ownership is about objects that own each other, and what the garbage collector does with them.
	Ownership Scenario = "ownership"
	// Grace is about the graceful deletion of pods that no kubelet runs.
	Grace Scenario = "grace"
	// Nodes is about the graceful deletion of pods that a kubelet runs.
	Nodes Scenario = "nodes"
	// Namespaces is about objects whose namespaces are deleted.
	Namespaces Scenario = "namespaces"
)

// Scenarios are all scenarios.
var Scenarios = []Scenario{Objects, Ownership, Grace, Nodes, Namespaces}

// HasPods reports whether the objects of the scenario are pods.
func (s Scenario) HasPods() bool { return s == Grace || s == Nodes }

// Properties are what a scenario checks.
func (s Scenario) Properties() []*history.Property {
	switch s {
	case Ownership:
		return history.OwnershipProperties
	case Grace:
		return history.GraceProperties
	case Nodes:
		return history.NodeProperties
	case Namespaces:
		return history.NamespaceProperties
	}
	return history.Properties
}

// Objects counts the objects of a round, those of its barrier included.
func (s Scenario) Objects() int {
	switch s {
	case Ownership:
		return graphObjects + 1 + canaries
	case Nodes:
		return nodePods
	case Namespaces:
		return namespaces * residents
	}
	return objects
}

// Driver runs rounds of programs on one collection of a cluster.
type Driver struct {
	scenario   Scenario
	settings   session.Config
	config     *rest.Config
	manifest   *client.Object
	collection client.Collection
	hasStatus  bool
	// clients are those of rounds, and own is that of the driver.
	clients []*client.Client
	own     *client.Client
	// quiet is an object that is written between rounds, and that owns other objects.
	quiet *client.Object
	// clusterOwner is a cluster-scoped object of the round that may own its objects, and elsewhere an object in another namespace that they may name
	// as an owner; nil where the run may not create it.
	clusterOwner, foreignOwner *client.Object
	watchers                   []*watcher
	// namespaces watches the namespaces of rounds; nil if they have none.
	namespaces *watcher
	// writers are the field managers of other clients that have written objects of rounds so far.
	writers  model.Names
	watching sync.WaitGroup
	stop     context.CancelFunc
	rounds   int
}

// NewDriver connects to a cluster and begins to watch. Close ends that.
func NewDriver(ctx context.Context, config *rest.Config, settings session.Config, scenario Scenario) (*Driver, error) {
	d := &Driver{scenario: scenario, settings: settings, config: config}
	if err := scenario.checkFeatures(settings); err != nil {
		return nil, err
	}
	own, err := d.connect()
	if err != nil {
		return nil, err
	}
	d.own = own
	if d.manifest, err = d.completed(scenario.manifest(own)); err != nil {
		return nil, err
	}
	if d.collection, err = own.CollectionOf(d.manifest); err != nil {
		return nil, err
	}
	if scenario == Namespaces {
		if d.collection.Namespace == "" {
			return nil, fmt.Errorf("%w: %s are cluster-scoped", ErrSkipped, d.collection.Resource.Resource)
		}
		d.collection.Namespace = "" // watches and lists are about all namespaces
	}
	if d.hasStatus, err = own.HasSubresource(d.collection, "status"); err != nil {
		return nil, err
	}
	created := own.Create(ctx, d.named(d.name("quiet"), map[string]string{stateLabel: watchedLabel}))
	if created.Err != nil {
		return nil, fmt.Errorf("%w: create %s %q: %w", ErrSkipped, d.manifest.GetKind(), d.name("quiet"), created.Err)
	}
	d.quiet = created.Object
	if scenario == Ownership {
		d.foreignOwner = d.createForeignOwner(ctx)
	}
	if scenario == Nodes {
		if d.manifest, err = d.completed(nodePod(settings.ImageRegistry)); err != nil {
			return nil, err
		}
	}
	return d, d.watch(context.WithoutCancel(ctx))
}

// manifest is what the objects of a scenario are made from, and the one that is written between rounds.
func (s Scenario) manifest(own *client.Client) *client.Object {
	if s.HasPods() {
		return fixtures.UnscheduledPod("explored")
	}
	return own.StandInFor(fixtures.ConfigMap("explored"))
}

// completed is a manifest in the namespace of the run, with the overlay of the user.
func (d *Driver) completed(manifest *client.Object) (*client.Object, error) {
	manifest.SetNamespace(d.settings.Namespace)
	return d.own.Completed(manifest)
}

// checkFeatures returns the skip reason of a scenario that requires a missing feature; nil if it has them all.
func (s Scenario) checkFeatures(settings session.Config) error {
	switch s {
	case Ownership:
		if reason := cmp.Or(settings.Unsupported[v1alpha1.GC], settings.LostGarbageCollector); reason != "" {
			return fmt.Errorf("%w: no garbage collector: %s", ErrSkipped, reason)
		}
	case Nodes:
		if reason := settings.Unsupported[v1alpha1.Node]; reason != "" {
			return fmt.Errorf("%w: no real node: %s", ErrSkipped, reason)
		}
	case Namespaces:
		if settings.Shared {
			return fmt.Errorf("%w: this run is confined to namespace %q", ErrSkipped, settings.Namespace)
		}
		if reason := cmp.Or(settings.Unsupported[v1alpha1.KCM], settings.Unsupported[v1alpha1.Namespace]); reason != "" {
			return fmt.Errorf("%w: no deletion of namespaces: %s", ErrSkipped, reason)
		}
	}
	return nil
}

// connect makes a client with its own rate limit.
func (d *Driver) connect() (*client.Client, error) {
	connected, err := session.Connect(d.config, d.settings)
	if err != nil {
		return nil, err
	}
	return connected.Harness, nil
}

// name is a name that no other run uses.
func (d *Driver) name(name string) string {
	if d.settings.Shared || d.collection.Namespace == "" && d.scenario != Namespaces {
		return d.settings.Run + "-" + name
	}
	return name
}

// nameAt is the name of an object of a round: r1-a, and so on to r1-z, r1-10 and r1-11.
func nameAt(round, index int) string {
	return fmt.Sprintf("r%d-%s", round, strconv.FormatInt(int64(10+index), 36))
}

// watchedLabel is the value of the label that a watcher selects.
const watchedLabel = "x"

// Limits of a round: clients share few objects, so that they meet.
const (
	objects    = 3
	operations = 40
	// Graphs have more objects and longer programs, because the end of each round waits for the garbage collector. Few objects have the name of one
	// that finalizers held, to which the properties of ownership do not apply.
	graphObjects    = 24
	graphOperations = 60
	// Pods on nodes have more time and fewer clients' operations, so that containers start between these.
	nodePods       = 6
	nodeOperations = 8
	// A round deletes several namespaces at once, as each takes seconds.
	namespaces          = 6
	residents           = 3
	namespaceOperations = 36
)

// heldBy is the finalizer that holds an object from its creation on.
const heldBy = "a"

// Options are what programs for this driver are drawn with.
func (d *Driver) Options(clients int) generate.Options {
	switch d.scenario {
	case Ownership:
		return generate.Options{
			Clients: clients, Operations: graphOperations, Objects: graphObjects, Finalizers: []string{heldBy}, GarbageCollector: true, Graph: true,
		}
	case Grace:
		return generate.Options{Clients: clients, Operations: operations, Objects: objects, Finalizers: []string{heldBy}, Pods: true}
	case Nodes:
		return generate.Options{Clients: clients, Operations: nodeOperations, Objects: nodePods, Finalizers: []string{heldBy}, Pods: true, Nodes: true}
	case Namespaces:
		return generate.Options{
			Clients: clients, Operations: namespaceOperations, Objects: namespaces * residents, Finalizers: []string{heldBy}, Namespaces: true,
		}
	}
	return generate.Options{
		Clients: clients, Operations: operations, Objects: objects, Finalizers: []string{heldBy, "b"}, Labels: []string{watchedLabel, "y"},
		Owner: d.quiet.GetName(), GarbageCollector: d.settings.Unsupported[v1alpha1.GC] == "" && d.settings.LostGarbageCollector == "",
		Status: d.hasStatus,
	}
}

// watch begins to watch: without end, with resumptions, from initial events, and with a selector.
func (d *Driver) watch(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	d.stop = stop
	for _, w := range []*watcher{
		{id: "the watch", strays: d.scenario == Objects && !d.settings.Shared && d.collection.Namespace != ""},
		{id: "the watch that is resumed", restartAfter: 23},
		{id: "the watch from initial events", initial: true, restartAfter: 61},
		{id: "the watch by label", label: watchedLabel},
		{id: "the watch by label that is resumed", label: watchedLabel, restartAfter: 11},
	} {
		w.collection, w.quiet = d.collection, d.quiet.GetName()
		if err := d.start(watching, w); err != nil {
			return err
		}
		d.watchers = append(d.watchers, w)
	}
	if d.scenario == Namespaces {
		d.namespaces = &watcher{id: "the watch of namespaces", collection: client.Namespaces}
		if err := d.start(watching, d.namespaces); err != nil {
			return err
		}
		d.namespaces.await(ctx, d.settings.AtLeast(deliveryTime), d.namespaces.hasBegun)
		if d.namespaces.unsupported != nil {
			return fmt.Errorf("%w: watch namespaces: %w", ErrSkipped, d.namespaces.unsupported)
		}
	}
	for _, w := range d.watchers {
		w.await(ctx, d.settings.AtLeast(deliveryTime), w.hasBegun) // a watch that has not begun is stalled
	}
	_, _, err := d.cut(ctx)
	return err
}

// start runs a watcher until the context ends.
func (d *Driver) start(ctx context.Context, w *watcher) error {
	connected, err := d.connect()
	if err != nil {
		return err
	}
	w.with, w.labels = connected, d.settings.Labels()
	w.changed, w.live, w.held, w.began = make(chan struct{}), map[string]model.Object{}, map[string]bool{}, time.Now()
	w.writers = map[string][]string{}
	d.watching.Go(func() {
		_ = crash.Caught("watch", func() error { w.run(ctx); return nil }) // what it missed is noticed
	})
	return nil
}

// Close ends the watches.
func (d *Driver) Close() {
	if d.stop != nil {
		d.stop()
		d.watching.Wait()
	}
}

// Round runs programs, one client each, and returns what they and the watches saw. Its objects are gone after it. It fails with
// ErrSkipped, and where the context ends.
func (d *Driver) Round(ctx context.Context, programs []generate.Program) (*history.History, error) {
	d.rounds++
	current := round{number: d.rounds, began: time.Now()}
	for i := range d.scenario.Objects() {
		current.names = append(current.names, d.name(nameAt(d.rounds, i)))
	}
	for _, w := range d.watchers {
		w.startRound(current.began)
	}
	if d.scenario == Namespaces {
		if err := d.createNamespaces(ctx, &current); err != nil {
			return nil, err
		}
	}
	if d.scenario == Ownership {
		d.clusterOwner = d.createClusterOwner(ctx)
	}
	actors, err := d.actors(len(programs), current)
	if err != nil {
		return nil, err
	}
	failures := make([]error, len(programs))
	var running sync.WaitGroup
	for i, program := range programs {
		running.Go(func() {
			failures[i] = crash.Caught("explore", func() error { return actors[i].run(ctx, program) })
		})
	}
	running.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return d.conclude(ctx, current, actors)
}

// actors are the clients of a round, and one more that cleans up after it.
func (d *Driver) actors(clients int, current round) ([]*actor, error) {
	for len(d.clients) <= clients {
		connected, err := d.connect()
		if err != nil {
			return nil, err
		}
		d.clients = append(d.clients, connected)
	}
	var actors []*actor
	for i := range clients + 1 {
		actors = append(actors, &actor{Driver: d, with: d.clients[i], number: i + 1, round: current, seen: map[string]*client.Object{}})
	}
	return actors, nil
}

func (a *actor) run(ctx context.Context, program generate.Program) error {
	for _, intent := range program {
		if err := a.do(ctx, intent); err != nil {
			return err
		}
	}
	return nil
}

// conclude removes the round's objects, waits until the watches have seen that, and returns the history.
func (d *Driver) conclude(ctx context.Context, current round, actors []*actor) (*history.History, error) {
	whole, last := &history.History{Began: current.began, Names: current.names, Graceful: d.scenario.HasPods()}, actors[len(actors)-1]
	if d.scenario == Ownership {
		var err error
		if whole.Settled, whole.Streams, err = last.settle(ctx); err != nil {
			return nil, err
		}
		if owner := d.clusterOwner; owner != nil {
			whole.ClusterOwner = &model.Owner{Name: owner.GetName(), UID: string(owner.GetUID())}
		}
	}
	if d.scenario == Nodes {
		var err error
		if whole.Wait, whole.Streams, err = last.shutDown(ctx); err != nil {
			return nil, err
		}
	}
	if d.scenario == Namespaces {
		var err error
		if whole.Namespaces, err = last.terminate(ctx); err != nil {
			return nil, err
		}
		whole.Homes = current.homes
	}
	if err := last.cleanUp(ctx); err != nil {
		return nil, err
	}
	_, streams, err := d.cut(ctx)
	if err != nil {
		return nil, err
	}
	whole.Streams = append(whole.Streams, streams...)
	d.writers = d.writers.With(d.watchers[0].takeWriters(current.names)...)
	whole.Writers = d.writers.List()
	for _, actor := range actors {
		whole.Requests = append(whole.Requests, actor.requests...)
	}
	slices.SortStableFunc(whole.Requests, func(a, b history.Request) int { return cmp.Compare(a.Call, b.Call) })
	return whole, nil
}

const (
	// canaries is the number of dependents of the barrier's owner.
	canaries = 3
	// collectionTime is how long the garbage collector may take to finish what clients have begun, on a fast cluster. It retries after
	// conflicts.
	collectionTime = 30 * time.Second
)

// settle releases the round's objects, deletes the cluster-scoped owner, and waits until the garbage collector has nothing left to do: until it
// has also deleted the dependents of an owner that is deleted last. Then it waits for the settling time, in which a faulty collector could still
// act. It returns the resourceVersion at the end, and what the watches have delivered up to it.
func (a *actor) settle(ctx context.Context) (version string, streams []history.Stream, err error) {
	if err := errors.Join(a.release(ctx), a.removeClusterOwner(ctx)); err != nil {
		return "", nil, err
	}
	program := generate.Program{{Verb: model.Create, Object: graphObjects}}
	for i := range canaries {
		program = append(program, generate.Intent{
			Verb: model.Create, Object: graphObjects + 1 + i, Change: model.Change{Owners: new(model.Names(generate.OwnerAt(graphObjects, false)))},
		})
	}
	program = append(program, generate.Intent{Verb: model.Delete, Object: graphObjects, UID: true, Policy: model.PolicyBackground})
	if err := a.run(ctx, program); err != nil {
		return "", nil, err
	}
	written, err := a.writeQuiet(ctx)
	if err != nil {
		return "", nil, err
	}
	watch := a.watchers[0]
	watch.await(ctx, a.settings.AtLeast(collectionTime), func() bool {
		return watch.hasDelivered(written) && len(history.Uncollected(watch.live)) == 0
	})
	client.Wait(ctx, a.settings.SettlingTime())
	return a.cut(ctx)
}

// cleanupAttempts limits the attempts to do something to an object after a round. What remains is removed when the run ends.
const cleanupAttempts = 20

// release removes the finalizer that holds objects of the round.
func (a *actor) release(ctx context.Context) error {
	patch := func(object int) generate.Intent {
		return generate.Intent{Verb: model.Patch, Object: object, Release: true}
	}
	return a.repeat(ctx, patch, func(object model.Object) bool { return object.Finalizers.Has(heldBy) })
}

// repeat repeats an operation on each of the round's objects that needs it, until the watch shows that none does. A request may be refused
// on its way, and its response may be lost.
func (a *actor) repeat(ctx context.Context, intent func(object int) generate.Intent, pending func(model.Object) bool) error {
	watch := a.watchers[0]
	for range cleanupAttempts {
		written, err := a.writeQuiet(ctx)
		if err != nil {
			return err
		}
		watch.await(ctx, a.settings.AtLeast(deliveryTime), func() bool { return watch.hasDelivered(written) })
		var program generate.Program
		for i, name := range a.round.names {
			if pending(watch.current(name)) {
				program = append(program, intent(i))
			}
		}
		if len(program) == 0 {
			return nil
		}
		if err := a.run(ctx, program); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp removes the round's objects, as part of the round.
func (a *actor) cleanUp(ctx context.Context) error {
	for i := range a.round.names {
		for range cleanupAttempts {
			gone, err := a.removes(ctx, generate.Program{
				{Verb: model.Patch, Object: i, Change: model.Change{Finalizers: new(model.Names(""))}},
				{Verb: model.Delete, Object: i, Policy: model.PolicyBackground, UID: a.scenario.HasPods(), Grace: new(int64(0))},
				{Verb: model.Get, Object: i},
			})
			if err != nil {
				return err
			}
			if gone {
				break
			}
		}
	}
	return nil
}

// removes runs a program that ends with a get, and reports whether that shows that the object is gone.
func (a *actor) removes(ctx context.Context, program generate.Program) (bool, error) {
	before := len(a.requests)
	if err := a.run(ctx, program); err != nil || len(a.requests) == before {
		return false, err
	}
	last := a.requests[len(a.requests)-1]
	return last.Operation.Verb == model.Get && last.Outcome.Code == http.StatusNotFound, nil
}

// deliveryTime is how long a watch may take to deliver a change, on a fast cluster.
const deliveryTime = 30 * time.Second

// cut writes the quiet object, waits until all watches have delivered that version, and returns what they delivered since the last time.
func (d *Driver) cut(ctx context.Context) (version string, streams []history.Stream, err error) {
	if version, err = d.writeQuiet(ctx); err != nil {
		return "", nil, err
	}
	for _, w := range d.watchers {
		streams = append(streams, w.cut(ctx, version, d.settings.AtLeast(deliveryTime))...)
	}
	return version, streams, ctx.Err()
}

// writeQuiet writes the quiet object and returns its resourceVersion. A watch that has delivered it has delivered everything before it.
func (d *Driver) writeQuiet(ctx context.Context) (string, error) {
	patch := d.mergePatch(model.Change{Value: new(fmt.Sprintf("after round %d at %s", d.rounds, time.Now().Format(time.RFC3339Nano)))}, "")
	written := d.own.Do(ctx, d.quiet, client.Request{Method: http.MethodPatch, Body: patch, ContentType: "application/merge-patch+json"})
	if written.Err != nil {
		return "", fmt.Errorf("write between rounds: %w", written.Err)
	}
	return written.Object.GetResourceVersion(), nil
}

// startRound makes the times of events those since a round began.
func (w *watcher) startRound(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = began
}
