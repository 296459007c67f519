package workloads

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/injection"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	checks "github.com/deletion-conformance/deletion-conformance/model/history/workloads"
)

const (
	// settlingTime is how long controllers may take to finish what clients have begun, on a fast cluster. They retry after conflicts.
	settlingTime = time.Minute
	// retryingTime is the same with injected faults: a controller waits twice as long before each further attempt, and one that was restarted fails until
	// it has read everything.
	retryingTime = 4 * time.Minute
	// delayedTime is the same for objects that take the name of a deleted one: Kubernetes itself may take minutes (docs/explore.md).
	delayedTime = 15 * time.Second
	// evictors is how many clients evict pods of each budget, and evictorPause how much later each one begins than the one before.
	evictors, evictorPause = 4, 3 * time.Millisecond
)

// lastPolicies are those by which workloads are deleted last, a round each.
var lastPolicies = []string{model.PolicyBackground, model.PolicyOrphan, model.PolicyForeground}

// isSettled reports whether controllers have nothing left to do.
func isSettled(state checks.State) bool { return len(state.Unsettled()) == 0 }

// settle releases the objects of a round, and waits until controllers have nothing left to do: until they have also handled evictions, and workloads
// that are created, changed and deleted last, or the deletion of a namespace that has them. Then it waits for the settling time, in which a faulty controller
// could still act. It adds what the watches have delivered, and removes everything.
func settle(ctx context.Context, d *exploration.Driver, whole *history.History) error {
	s := d.Current.State.(*stage)
	canaries, renewals, deletes := s.lastPrograms()
	emptied := s.isEmptied(ctx, d)
	if !emptied {
		if err := d.Run(ctx, d.Last, canaries); err != nil {
			return err
		}
		s.await(ctx, d.Settings.AtLeast(settlingTime), func(state checks.State) bool { return s.canaries(state) == len(s.kinds) })
		if err := d.Run(ctx, d.Last, renewals); err != nil {
			return err
		}
	} else {
		client.Wait(ctx, d.Settings.SettlingTime()) // what was created before that is delivered
	}
	if err := s.release(ctx, d); err != nil {
		return err
	}
	steps := s.lastSteps(deletes, d.Injects(injection.Refuse))
	for i, settled := 0, s.awaitSettled(ctx, d); i < len(steps) && settled && !emptied; i++ { // otherwise the state as it is
		if err := d.RunTogether(ctx, steps[i]); err != nil {
			return err
		}
		if i == len(steps)-1 {
			s.await(ctx, d.Settings.AtLeast(settlingTime), s.areDeleted)
		}
		settled = s.awaitSettled(ctx, d)
	}
	if s.read() == nil { // otherwise events may be missing
		whole.Workloads, whole.Quiet, whole.Unsupervised = slices.Clone(s.events), len(s.events), s.created == nil
	}
	err := s.remove(ctx, d)
	s.ended()
	<-s.stopped
	whole.Requests = append(whole.Requests, s.kubelet.with.Requests...)
	return err
}

// lastSteps are what clients do when controllers have nothing left to do, one step after the other: evictions, changes, and the deletes of the workloads that
// were created last, or of the namespace of the round. Where clients inject it, the writes for these deletes are refused. Those for changes are not, as a
// rollout may not go on after a refusal.
func (s *stage) lastSteps(deletes generate.Program, refuses bool) [][]generate.Program {
	changes := lastChanges(s.Number)
	if s.own != nil {
		changes, deletes = nil, generate.Program{{Verb: model.Delete, Namespace: true}}
	}
	if !refuses {
		return [][]generate.Program{s.evictions(), {slices.Concat(changes, deletes)}}
	}
	refusals := generate.Program{{Fault: injection.Refuse, Step: injection.EachKind}}
	return [][]generate.Program{s.evictions(), {changes}, {slices.Concat(refusals, deletes)}}
}

// lastPrograms create one workload of each kind, change these, and delete them.
func (s *stage) lastPrograms() (canaries, renewals, deletes generate.Program) {
	for i, k := range s.kinds {
		replicas := int64(1)
		if k.name == "Deployment" {
			replicas = evictors
		}
		canaries = append(canaries, intent{Verb: model.Create, Object: objects + i, Change: model.Change{Value: new("canary")}, Replicas: &replicas})
		switch {
		case k.mutable:
			renewals = append(renewals, renewal(objects+i))
		case k.name == budget: // it allows all evictions then
			renewals = append(renewals, intent{Verb: model.Patch, Object: objects + i, Step: scale, Replicas: new(int64(0))})
		}
		deletes = append(deletes, intent{Verb: model.Delete, Object: objects + i, UID: true, Policy: lastPolicies[s.Number%len(lastPolicies)]})
	}
	return canaries, renewals, deletes
}

// isEmptied reports whether clients have deleted the namespace of the round, so that nothing can be created in it.
func (s *stage) isEmptied(ctx context.Context, d *exploration.Driver) bool {
	if s.own == nil {
		return false
	}
	read := d.Own.Get(ctx, s.own)
	return apierrors.IsNotFound(read.Err) || read.Err == nil && read.Object.GetDeletionTimestamp() != nil
}

// evictions are programs of clients that evict pods which each PodDisruptionBudget selects, at nearly the same time, when all pods are ready. Those of
// exactly the same time would conflict, and the API server repeats such an eviction only half a second later.
func (s *stage) evictions() []generate.Program {
	evictions := make([]generate.Program, evictors)
	for i := range objects + len(s.kinds) {
		if s.kindOf(i).name == budget {
			for client := range evictions {
				evictions[client] = append(evictions[client], intent{
					Verb: model.Delete, UID: true, Step: evict, Part: 1 + client, Object: i, Pause: time.Duration(client) * evictorPause,
				})
			}
		}
	}
	return evictions
}

// renewal gives a workload a new template.
func renewal(object int) intent {
	return intent{Verb: model.Patch, Object: object, Step: template, Change: model.Change{Value: new("last")}}
}

// lastChanges scale one half of the workloads of a round, and give the others a new template, when all their pods are ready.
func lastChanges(round int) generate.Program {
	var changes generate.Program
	for i := range objects {
		change := intent{Verb: model.Patch, Object: i, Step: scale, Replicas: new(int64(1))}
		if (round+i)%2 == 0 {
			change = renewal(i)
		}
		changes = append(changes, change)
	}
	return changes
}

// canaries counts the last workloads that exist.
func (s *stage) canaries(state checks.State) (count int) {
	for i := range s.kinds {
		if _, exists := state[s.kindOf(objects+i).name+"/"+s.Names[objects+i]]; exists {
			count++
		}
	}
	return count
}

// areDeleted reports whether the last workloads, or the namespace of the round, are gone or terminating.
func (s *stage) areDeleted(state checks.State) bool {
	isDeleted := func(name string) bool {
		last, exists := state[name]
		return !exists || last.Object.Terminating || last.Type == history.Deleted
	}
	if s.own != nil {
		return isDeleted("Namespace/" + s.home)
	}
	for i := range s.kinds {
		if !isDeleted(s.kindOf(objects+i).name + "/" + s.Names[objects+i]) {
			return false
		}
	}
	return true
}

// awaitSettled waits until controllers have nothing left to do, also after the settling time.
func (s *stage) awaitSettled(ctx context.Context, d *exploration.Driver) bool {
	patience := d.Settings.AtLeast(settlingTime)
	if d.InjectsFaults() {
		patience = d.Settings.AtLeast(retryingTime)
	}
	for range exploration.Attempts {
		if !s.await(ctx, d.Settings.Slowed(delayedTime), isSettled) && (s.isDelayed() || !s.await(ctx, patience, isSettled)) {
			return false
		}
		client.Wait(ctx, d.Settings.SettlingTime())
		if holds, err := s.holds(isSettled); holds || err != nil {
			return holds
		}
	}
	return false
}

// isDelayed reports whether only objects that take the name of a deleted one lack something.
func (s *stage) isDelayed() bool {
	delayed, err := s.holds(func(checks.State) bool { return checks.Delayed(s.events) })
	return delayed || err != nil
}

// release removes the finalizers of clients from all objects of the round, as far as the watches have delivered these.
func (s *stage) release(ctx context.Context, d *exploration.Driver) error {
	isHeld := func(event history.Event) bool { return event.Object.Finalizers.Has(clients.HeldBy) }
	for range exploration.Attempts {
		held := s.live(func(object *client.Object) bool {
			return slices.Contains(object.GetFinalizers(), watching.Prefix+clients.HeldBy)
		})
		for _, object := range held {
			request := clients.As(watching.KeyOf(object), object, model.Operation{Verb: model.Patch}, clients.ReleaseRequest())
			if err := d.Last.Send(ctx, request); err != nil {
				return err
			}
		}
		if len(held) == 0 || s.await(ctx, d.Settings.AtLeast(settlingTime), func(state checks.State) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Values(state)), isHeld)
		}) {
			return nil
		}
	}
	return nil
}

// remove removes what is left of the round, its namespace and its node.
func (s *stage) remove(ctx context.Context, d *exploration.Driver) error {
	isEmpty := func(state checks.State) bool { return len(state.Content()) == 0 }
	for range exploration.Attempts {
		for _, collection := range s.collections {
			if _, response := d.Own.RemoveEach(ctx, collection, s.Selected().String(), d.Settings.Removal()); client.IsNotOwned(response.Err) {
				return response.Err
			}
		}
		if s.await(ctx, d.Settings.SettlingTime(), isEmpty) || ctx.Err() != nil {
			break
		}
	}
	if s.own != nil {
		d.Own.Delete(ctx, s.own, client.WithKind(metav1.DeleteOptions{}))
	}
	if s.created != nil {
		d.Own.Delete(ctx, s.created, client.WithKind(metav1.DeleteOptions{}))
	}
	return ctx.Err()
}
