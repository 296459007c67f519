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

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/removals"
)

// ErrSkipped is the error of a cluster that a scenario cannot explore.
var ErrSkipped = clients.ErrSkipped

// Driver runs rounds of programs on one collection of a cluster.
type Driver struct {
	Settings session.Config
	// Manifest is what the objects of rounds are made from, unless Begin changes that.
	Manifest   *client.Object
	Collection client.Collection
	// Owners may own objects of rounds; see clients.Round. The one for any other name is written between rounds.
	Owners map[string]*client.Object
	// Own is the client of the driver itself.
	Own *client.Client
	// Watchers watch the objects; the first one all of them, without end. Namespaces watches the namespaces of rounds; nil if they have none.
	Watchers   []*watching.Watcher
	Namespaces *watching.Watcher
	// Current is the round that goes on, and Last its last client, which ends it.
	Current *clients.Round
	Last    *clients.Actor
	// Children records what an operator creates, and Operated is what it does for an object; nil where no operator is explored.
	Children *watching.Children
	Operated *history.Operated

	scenario  *Scenario
	config    *rest.Config
	hasStatus bool
	// connected are the clients of rounds.
	connected []*client.Client
	// removed is what rounds have seen removed so far.
	removed removals.Known
	// actors are the clients of the round.
	actors []*clients.Actor
	// writers are the field managers of other clients that have written objects of rounds so far.
	writers model.Names
	// faults injects faults; nil if there are none. Those that the programs of the round contain are injected.
	faults   *injection.Injector
	injected []string
	watching sync.WaitGroup
	ending   context.Context
	stop     context.CancelFunc
}

// NewDriver connects to a cluster and begins to watch. Close ends that.
func NewDriver(ctx context.Context, config *rest.Config, settings session.Config, scenario *Scenario) (*Driver, error) {
	d := &Driver{scenario: scenario, Settings: settings, config: config, Current: &clients.Round{}, removed: removals.Known{}}
	if err := scenario.check(settings); err != nil {
		return nil, err
	}
	var err error
	if d.Own, err = d.connect(); err != nil {
		return nil, err
	}
	manifest := d.Own.StandInFor(fixtures.ConfigMap("explored"))
	if scenario.Pods {
		manifest = fixtures.UnscheduledPod("explored")
	}
	if d.Manifest, err = d.Completed(manifest); err != nil {
		return nil, err
	}
	if d.Collection, err = d.Own.CollectionOf(d.Manifest); err != nil {
		return nil, err
	}
	if scenario.Namespaces > 0 {
		if d.Collection.Namespace == "" {
			return nil, fmt.Errorf("%w: %s are cluster-scoped", ErrSkipped, d.Collection.Resource.Resource)
		}
		d.Collection.Namespace = "" // watches and lists are about all namespaces
	}
	if d.hasStatus, err = d.Own.HasSubresource(d.Collection, "status"); err != nil {
		return nil, err
	}
	name := d.Name("quiet")
	created := d.Own.Create(ctx, clients.Named(d.Manifest, name, labels.Merge(settings.Labels(), labels.Set{watching.StateLabel: watching.Label})))
	if created.Err != nil {
		return nil, fmt.Errorf("%w: create %s %q: %w", ErrSkipped, d.Manifest.GetKind(), name, created.Err)
	}
	d.Owners = map[string]*client.Object{"": created.Object}
	if err := d.watch(context.WithoutCancel(ctx)); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Completed is a manifest in the namespace of the run, with the overlay of the user.
func (d *Driver) Completed(manifest *client.Object) (*client.Object, error) {
	manifest.SetNamespace(d.Settings.Namespace)
	return d.Own.Completed(manifest)
}

// connect makes a client with its own rate limit.
func (d *Driver) connect() (*client.Client, error) {
	connected, err := session.Connect(d.config, d.Settings)
	if err != nil {
		return nil, err
	}
	return connected.Harness, nil
}

// Name is a name that no other run uses.
func (d *Driver) Name(name string) string {
	if d.Settings.Shared || d.Collection.Namespace == "" && d.scenario.Namespaces == 0 {
		return d.Settings.Run + "-" + name
	}
	return name
}

// nameAt is the name of an object of a round: r1-a, and so on to r1-z, r1-10 and r1-11.
func nameAt(round, index int) string {
	return fmt.Sprintf("r%d-%s", round, strconv.FormatInt(int64(10+index), 36))
}

// Options are what programs for this driver are drawn with.
func (d *Driver) Options(clients int) generate.Options {
	return generate.Options{
		Clients: clients, Operations: d.scenario.Operations, Objects: d.scenario.Objects, Owner: d.Owners[""].GetName(),
		GarbageCollector: d.Settings.Unsupported[v1alpha1.GC] == "" && d.Settings.LostGarbageCollector == "", Status: d.hasStatus,
		Draw: d.scenario.Draw, Faults: d.faults.Drawn(),
	}
}

// Inject makes later rounds have injected faults, and returns the reasons why some cannot be injected. Close reverts them.
func (d *Driver) Inject(ctx context.Context, selected injection.Selection) (leftOut []string, err error) {
	watchers := d.Watchers
	if d.Namespaces != nil {
		watchers = append(slices.Clip(watchers), d.Namespaces)
	}
	d.faults, err = injection.Begin(ctx, selected, injection.Cluster{Settings: d.Settings, Client: d.Own, Watchers: watchers, Quiet: d.Owners[""]})
	return d.faults.LeftOut(), err
}

// InjectsFaults reports whether rounds have injected faults.
func (d *Driver) InjectsFaults() bool { return len(d.faults.Drawn()) > 0 }

// Injects reports whether the programs of the round contain an injected fault.
func (d *Driver) Injects(fault string) bool { return slices.Contains(d.injected, fault) }

// watch begins to watch the objects, and the namespaces of rounds if they have any.
func (d *Driver) watch(ctx context.Context) error {
	d.ending, d.stop = context.WithCancel(ctx)
	d.Watchers = watching.Of(d.Collection, d.Settings.Labels(), d.Owners[""].GetName(), d.scenario.Stale && !d.Settings.Shared && d.Collection.Namespace != "")
	all := d.Watchers
	if d.scenario.Namespaces > 0 {
		d.Namespaces = watching.OfNamespaces(d.Settings.Labels())
		all = append(slices.Clip(all), d.Namespaces)
	}
	for _, w := range all {
		connected, err := d.connect()
		if err != nil {
			return err
		}
		w.Start(d.ending, connected, &d.watching)
	}
	for _, w := range all {
		w.Await(ctx, d.Settings.AtLeast(deliveryTime), w.HasBegun) // a watch that has not begun is stalled
	}
	if d.Namespaces != nil && d.Namespaces.Unsupported != nil {
		return fmt.Errorf("%w: watch namespaces: %w", ErrSkipped, d.Namespaces.Unsupported)
	}
	_, _, err := d.Cut(ctx)
	return err
}

// Go runs a function until it returns. Close ends its context and waits for it.
func (d *Driver) Go(run func(context.Context)) {
	d.watching.Go(func() {
		_ = crash.Caught("explore", func() error { run(d.ending); return nil }) // what it did not do is noticed
	})
}

// Connect makes a client with its own rate limit.
func (d *Driver) Connect() (*client.Client, error) { return d.connect() }

// Close ends the watches and the injected faults.
func (d *Driver) Close() {
	d.faults.Close()
	d.stop()
	d.watching.Wait()
	if d.Children != nil {
		d.Children.Stop()
	}
}

// Round runs programs, one client each, and returns what they and the watches saw. Its objects are gone after it. It fails with
// ErrSkipped, and where the context ends.
func (d *Driver) Round(ctx context.Context, programs []generate.Program) (*history.History, error) {
	if err := d.begin(ctx, programs); err != nil {
		return nil, err
	}
	if err := d.RunTogether(ctx, programs); err != nil {
		return nil, err
	}
	return d.conclude(ctx)
}

// RunTogether runs programs at the same time, each by a client of the round. It runs no more than the round has clients.
func (d *Driver) RunTogether(ctx context.Context, programs []generate.Program) error {
	programs = programs[:min(len(programs), len(d.actors)-1)]
	failures := make([]error, len(programs))
	var running sync.WaitGroup
	for i, program := range programs {
		running.Go(func() {
			failures[i] = crash.Caught("explore", func() error { return d.Run(ctx, d.actors[i], program) })
		})
	}
	running.Wait()
	return errors.Join(failures...)
}

// begin begins a round for the clients of programs, one more that ends it, and one that only injected faults use.
func (d *Driver) begin(ctx context.Context, programs []generate.Program) error {
	d.Current = &clients.Round{
		Number: d.Current.Number + 1, Began: time.Now(), Manifest: d.Manifest, Labels: d.Settings.Labels(), Owners: d.Owners,
		Current: d.Watchers[0].Current, Stale: d.scenario.Stale,
	}
	for i := range d.scenario.Objects + d.scenario.Barrier {
		d.Current.Names = append(d.Current.Names, d.Name(nameAt(d.Current.Number, i)))
	}
	d.injected = injection.NamesIn(programs)
	for _, w := range d.Watchers {
		w.StartRound(d.Current.Began)
	}
	if err := d.createNamespaces(ctx, programs); err != nil {
		return err
	}
	if d.scenario.Begin != nil {
		if err := d.scenario.Begin(ctx, d); err != nil {
			return err
		}
	}
	d.actors = nil
	for i := range len(programs) + 2 {
		if i == len(d.connected) {
			connected, err := d.connect()
			if err != nil {
				return err
			}
			d.connected = append(d.connected, connected)
		}
		d.actors = append(d.actors, clients.New(d.Current, d.connected[i], i+1))
	}
	d.faults.StartRound(d.actors[len(programs)+1])
	d.actors = d.actors[:len(programs)+1]
	d.Last = d.actors[len(programs)]
	return nil
}

// Requests are those that the clients of the round have sent so far, in the order of time.
func (d *Driver) Requests() []history.Request {
	var requests []history.Request
	for _, actor := range d.actors {
		requests = append(requests, actor.Requests...)
	}
	slices.SortStableFunc(requests, func(a, b history.Request) int { return cmp.Compare(a.Call, b.Call) })
	return requests
}

// createNamespaces creates the namespaces of a round, and distributes its objects over them.
func (d *Driver) createNamespaces(ctx context.Context, programs []generate.Program) error {
	if d.scenario.Namespaces == 0 || d.scenario.Apart != nil && !d.scenario.Apart(programs) {
		return nil
	}
	d.Namespaces.StartRound(d.Current.Began)
	d.Current.Homes = map[string]string{}
	for i := range d.scenario.Namespaces {
		namespace := fixtures.Namespace(d.Settings.Run + "-" + nameAt(d.Current.Number, i))
		namespace.SetLabels(d.Settings.Labels())
		if response := d.Own.Create(ctx, namespace); response.Err != nil {
			return fmt.Errorf("%w: create namespace %q: %w", ErrSkipped, namespace.GetName(), response.Err)
		}
		for at := i; at < len(d.Current.Names); at += d.scenario.Namespaces {
			d.Current.Homes[d.Current.Names[at]] = namespace.GetName()
		}
	}
	return nil
}

// Run runs a program of a client.
func (d *Driver) Run(ctx context.Context, actor *clients.Actor, program generate.Program) error {
	for _, intent := range program {
		client.Wait(ctx, intent.Pause)
		d.faults.AwaitServer()
		act := d.scenario.Act
		if intent.Fault != "" {
			act = d.faults.Inject
		}
		if err := act(ctx, actor, intent); err != nil {
			return err
		}
	}
	return nil
}

// reflectorDelay is how late controllers may watch again after a restart of the API server (defaultBackoffMax in the reflector of client-go, with its
// jitter), and outageEffect how long that may have an effect.
const (
	reflectorDelay = time.Minute
	outageEffect   = 2 * time.Minute
)

// isInterrupted reports whether the API server was restarted during the round or shortly before.
func (d *Driver) isInterrupted() bool {
	return d.faults.HasInterrupted(d.Current.Began.Add(-outageEffect))
}

// Patience is how long controllers may take for what they do within this time on a fast cluster: longer after a restart of the API server.
func (d *Driver) Patience(usual time.Duration) time.Duration {
	if d.isInterrupted() {
		usual += reflectorDelay
	}
	return d.Settings.AtLeast(usual)
}

// conclude removes the round's objects, waits until the watches have seen that, and returns the history.
func (d *Driver) conclude(ctx context.Context) (*history.History, error) {
	whole := &history.History{Began: d.Current.Began, Names: d.Current.Names, Graceful: d.scenario.Pods, Homes: d.Current.Homes}
	if d.scenario.Settle != nil {
		if err := d.scenario.Settle(ctx, d, whole); err != nil {
			return nil, err
		}
	}
	whole.Interrupted = d.isInterrupted()
	injected, written := d.faults.EndRound()
	whole.Faults, whole.Requests = injected, append(whole.Requests, written...)
	if err := d.cleanUp(ctx); err != nil {
		return nil, err
	}
	_, streams, err := d.Cut(ctx)
	if err != nil {
		return nil, err
	}
	whole.Streams = append(whole.Streams, streams...)
	d.lookBack(ctx, whole)
	d.writers = d.writers.With(d.Watchers[0].TakeWriters(d.Current.Names)...)
	whole.Writers = d.writers.List()
	whole.Requests = append(whole.Requests, d.Requests()...)
	slices.SortStableFunc(whole.Requests, func(a, b history.Request) int { return cmp.Compare(a.Call, b.Call) })
	d.removed.Enter(whole)
	return whole, ctx.Err()
}

// lookBack adds to a round what a list and a watch from the beginning show of all rounds. What fails shows nothing.
func (d *Driver) lookBack(ctx context.Context, whole *history.History) {
	ctx, cancel := context.WithTimeout(ctx, d.Settings.AtLeast(deliveryTime))
	defer cancel()
	selected, call := d.Settings.Labels(), time.Since(d.Current.Began)
	listed, response := d.Own.List(ctx, d.Collection, selected.String())
	if response.Err == nil {
		whole.Requests = append(whole.Requests, clients.Listed(listed, response.Object.GetResourceVersion(), call, time.Since(d.Current.Began)))
	}
	whole.Streams = append(whole.Streams, watching.InitialEvents(ctx, d.Own, d.Collection, selected, d.Current.Began)...)
}

// Attempts limits the attempts to do something to an object after a round. What remains is removed when the run ends.
const Attempts = 20

// Release removes the finalizers of the run that hold objects of the round.
func (d *Driver) Release(ctx context.Context) error {
	patch := func(object int) generate.Intent {
		return generate.Intent{Verb: model.Patch, Object: object, Release: true}
	}
	return d.Repeat(ctx, patch, func(object model.Object) bool { return model.Own(object.Finalizers) != "" })
}

// Repeat repeats an operation on each of the round's objects that needs it, until the watch shows that none does. A request may be refused
// on its way, and its response may be lost.
func (d *Driver) Repeat(ctx context.Context, intent func(object int) generate.Intent, pending func(model.Object) bool) error {
	watch := d.Watchers[0]
	for range Attempts {
		written, err := d.WriteQuiet(ctx)
		if err != nil {
			return err
		}
		watch.Await(ctx, d.Settings.AtLeast(deliveryTime), func() bool { return watch.HasDelivered(written) })
		var program generate.Program
		for i, name := range d.Current.Names {
			if pending(watch.Current(name)) {
				program = append(program, intent(i))
			}
		}
		if len(program) == 0 {
			return nil
		}
		if err := d.Run(ctx, d.Last, program); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp removes the round's objects, as part of the round.
func (d *Driver) cleanUp(ctx context.Context) error {
	for i := range d.Current.Names {
		if _, err := d.Remove(ctx, generate.Program{
			{Verb: model.Patch, Object: i, Change: model.Change{Finalizers: new(model.Names(""))}},
			{Verb: model.Delete, Object: i, Policy: model.PolicyBackground, UID: d.scenario.Pods, Grace: new(int64(0))},
			{Verb: model.Get, Object: i},
		}); err != nil {
			return err
		}
	}
	return nil
}

// Remove repeats a program that ends with a get, and reports whether that shows in the end that the object is gone.
func (d *Driver) Remove(ctx context.Context, program generate.Program) (bool, error) {
	for range Attempts {
		before := len(d.Last.Requests)
		if err := d.Run(ctx, d.Last, program); err != nil {
			return false, err
		}
		for _, last := range d.Last.Requests[max(before, len(d.Last.Requests)-1):] {
			if last.Operation.Verb == model.Get && last.Outcome.Code == http.StatusNotFound {
				return true, nil
			}
		}
	}
	return false, nil
}

// deliveryTime is how long a watch may take to deliver a change, on a fast cluster.
const deliveryTime = 30 * time.Second

// Cut writes the quiet object, waits until all watches have delivered that version, and returns what they delivered since the last time.
func (d *Driver) Cut(ctx context.Context) (version string, streams []history.Stream, err error) {
	if version, err = d.WriteQuiet(ctx); err != nil {
		return "", nil, err
	}
	for _, w := range d.Watchers {
		streams = append(streams, w.Cut(ctx, version, d.Settings.AtLeast(deliveryTime))...)
	}
	return version, streams, ctx.Err()
}

// WriteQuiet writes the quiet object and returns its resourceVersion. A watch that has delivered it has delivered everything before it.
func (d *Driver) WriteQuiet(ctx context.Context) (string, error) {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		watching.ValueAnnotation: fmt.Sprintf("after round %d at %s", d.Current.Number, time.Now().Format(time.RFC3339Nano)),
	}}}
	written := d.Own.Do(ctx, d.Owners[""], client.Request{Method: http.MethodPatch, Body: patch, ContentType: "application/merge-patch+json"})
	if written.Err != nil {
		return "", fmt.Errorf("write between rounds: %w", written.Err)
	}
	return written.Object.GetResourceVersion(), nil
}
