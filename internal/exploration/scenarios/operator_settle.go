package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/operators"
)

const (
	// undisturbed is the name of the object that shows what the operator does for each.
	undisturbed = "undisturbed"
	// reactionTime is how long an operator may take to react to a new object, on a fast cluster, and idleTime how long it writes nothing after
	// that when it has finished.
	reactionTime = 10 * time.Second
	idleTime     = time.Second
	// servingTime is how long it may take to finish what clients have begun, unless the user has set a timeout.
	servingTime = 20 * time.Second
)

// meetOperator watches for children in a round, and before the first one learns what the operator does for an object.
func meetOperator(ctx context.Context, d *exploration.Driver) (err error) {
	if d.Children == nil {
		if d.Children, err = watching.WatchChildren(ctx, d.Own, d.Collection.Kind, d.Settings.Namespace); err != nil {
			return fmt.Errorf("%w: %w", clients.ErrSkipped, err)
		}
		if d.Operated, err = learn(ctx, d); err != nil {
			return err
		}
	}
	homes := slices.Compact(slices.Sorted(maps.Values(d.Current.Homes)))
	if err := d.Children.StartRound(ctx, d.Current.Began, d.Current.Names, homes); err != nil {
		return err
	}
	d.Current.Children, d.Current.Restart = d.Children.Of, restartOf(d)
	return nil
}

// learn creates an object that no client changes, and waits until the operator has finished.
func learn(ctx context.Context, d *exploration.Driver) (*history.Operated, error) {
	name := d.Name(undisturbed)
	if err := d.Children.StartRound(ctx, d.Current.Began, []string{name}, nil); err != nil {
		return nil, err
	}
	created := d.Own.Create(ctx, clients.Named(d.Manifest, name, d.Settings.Labels()))
	if created.Err != nil {
		return nil, fmt.Errorf("%w: create %s %q: %w", clients.ErrSkipped, d.Manifest.GetKind(), name, created.Err)
	}
	watch, patience, lost := d.Watchers[0], d.Settings.Slowed(reactionTime), error(nil)
	var seen model.Object
	var children []history.Child
	since := time.Now()
	await := func(done func() bool) bool {
		return wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, func(context.Context) (bool, error) {
			object := watch.Current(name)
			events, err := d.Children.Events()
			if object != seen || len(events) != len(children) {
				seen, children, since = object, events, time.Now()
			}
			lost = err
			return done(), err
		}) == nil
	}
	reacted := await(func() bool {
		return len(children) > 0 || seen.UID != "" && seen.ResourceVersion != created.Object.GetResourceVersion()
	})
	if !reacted {
		return nil, errors.Join(fmt.Errorf("%w: the operator neither updated %s %q nor created an object for it within %s", clients.ErrSkipped,
			d.Manifest.GetKind(), name, patience), lost, ctx.Err())
	}
	_ = await(func() bool { return time.Since(since) >= d.Settings.Slowed(idleTime) }) // one that never rests is no error
	written, err := d.WriteQuiet(ctx)
	return operatedBy(created.Object.GetResourceVersion(), seen, children, written), err
}

// operatedBy is what an operator did for an object that was created with one resourceVersion, before another object was written with another.
func operatedBy(created string, seen model.Object, children []history.Child, written string) *history.Operated {
	operated := &history.Operated{Kinds: map[string]int{}, Ordered: len(children) > 0}
	operated.Finalizers = seen.Finalizers.Without(append(model.Own(seen.Finalizers).List(), model.Foreground, model.Orphan)...)
	living := map[string]string{}
	for _, child := range children {
		living[child.Object.UID] = child.Kind()
		if child.Type == history.Deleted {
			delete(living, child.Object.UID)
		}
		operated.Ordered = operated.Ordered && isBetween(created, child.Object.ResourceVersion, written)
	}
	for _, kind := range living {
		operated.Kinds[kind]++
	}
	return operated
}

// isBetween reports whether a resourceVersion is between two of another kind, as in one store.
func isBetween(before, version, after string) bool {
	var numbers []uint64
	for _, text := range []string{before, version, after} {
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return false
		}
		numbers = append(numbers, number)
	}
	return slices.IsSorted(numbers)
}

// restartOf restarts the operator: one that runs in a process of the run's, and a Deployment where the run may disturb others. It is nil where that is
// not possible.
func restartOf(d *exploration.Driver) func(context.Context, time.Duration) error {
	which := d.Settings.Controller
	switch {
	case which.IsDeployment() && d.Settings.Disruptive && !d.Settings.Shared:
		return func(ctx context.Context, _ time.Duration) error {
			return controller.Restart(ctx, d.Own, which, d.Settings.Run, d.Settings.AtLeast(restartTime))
		}
	case which.IsNamed() && !which.IsDeployment():
		return func(ctx context.Context, down time.Duration) error {
			start, err := controller.Pause(ctx, which)
			if err != nil {
				return err
			}
			client.Wait(ctx, down)
			return start()
		}
	}
	return nil
}

// restartTime is how long a Deployment may take to stop, and to start, including pulling an image.
const restartTime = 2 * time.Minute

// settleOperator waits for two quiet moments: one while objects live and are held, and one when all are deleted. A round that deletes the namespace has
// only the second.
func settleOperator(ctx context.Context, d *exploration.Driver, whole *history.History) error {
	operated := *d.Operated
	whole.Operated = &operated
	if whole.Homes == nil {
		if err := restore(ctx, d, whole); err != nil {
			return err
		}
		if err := awaitQuiet(ctx, d, whole); err != nil {
			return err
		}
	}
	for i := range min(2, len(whole.Homes)) { // twice, as the response to the first may be lost
		if err := d.Run(ctx, d.Last, generate.Program{{Verb: model.Delete, Object: i, Namespace: true}}); err != nil {
			return err
		}
	}
	deletion := func(object int) intent {
		return intent{Verb: model.Delete, Object: object, UID: true, Policy: policies[(d.Current.Number+object)%len(policies)]}
	}
	isAlive := func(object model.Object) bool { return object.UID != "" && !object.Terminating }
	if err := errors.Join(d.Release(ctx), d.Repeat(ctx, deletion, isAlive)); err != nil {
		return err
	}
	if err := awaitQuiet(ctx, d, whole); err != nil {
		return err
	}
	whole.Requests = nil // the driver adds all of them
	return nil
}

// policies are those of the last deletes of a round, in turn.
var policies = []string{model.PolicyBackground, model.PolicyForeground, model.PolicyBackground, model.PolicyOrphan}

// restore reads all objects, and changes those whose children clients have deleted: an operator need not watch children.
func restore(ctx context.Context, d *exploration.Driver, whole *history.History) (err error) {
	whole.Requests = d.Requests()
	if whole.Operated.Children, err = d.Children.Events(); err != nil {
		return err
	}
	var program generate.Program
	for i, name := range d.Current.Names {
		program = append(program, intent{Verb: model.Get, Object: i})
		if operators.IsDisturbed(whole, name) {
			program = append(program, intent{Verb: model.Patch, Object: i, Change: model.Change{Value: new("restored")}})
		}
	}
	return d.Run(ctx, d.Last, program)
}

// awaitQuiet waits until the operator, the garbage collector and the namespace controller have finished, and then for the settling time, in which a
// faulty one could still act. It adds the moment and what the watches have delivered up to it.
func awaitQuiet(ctx context.Context, d *exploration.Driver, whole *history.History) error {
	written, err := d.WriteQuiet(ctx)
	if err != nil {
		return err
	}
	watch, patience := d.Watchers[0], cmp.Or(d.Settings.WaitTimeout, d.Patience(servingTime))
	if whole.Homes != nil {
		patience = d.Patience(terminationTime)
	}
	watch.Await(ctx, patience, func() bool { return watch.HasDelivered(written) })
	var lost error
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, func(context.Context) (bool, error) {
		lost = observe(d, whole)
		return len(operators.Unfinished(whole, watch.States(d.Current.Names))) == 0 && areGone(d), lost
	})
	client.Wait(ctx, d.Settings.SettlingTime())
	version, streams, err := d.Cut(ctx)
	whole.Streams = append(whole.Streams, streams...)
	if err = errors.Join(err, lost, observe(d, whole)); err != nil {
		return err
	}
	whole.Operated.Quiet = append(whole.Operated.Quiet, history.Moment{Version: version, Children: len(whole.Operated.Children)})
	return nil
}

// observe adds what has happened to a history.
func observe(d *exploration.Driver, whole *history.History) (err error) {
	if whole.Requests = d.Requests(); whole.Homes != nil {
		whole.Namespaces = append(whole.Namespaces, d.Namespaces.Events()...)
	}
	whole.Operated.Children, err = d.Children.Events()
	return err
}

// areGone reports whether the namespaces of the round are gone, if it has any.
func areGone(d *exploration.Driver) bool {
	for _, home := range d.Current.Homes {
		if d.Namespaces.Current(home).UID != "" {
			return false
		}
	}
	return true
}
