package injection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/clients"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration/watching"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/model/generate"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// Cluster is what faults are injected into.
type Cluster struct {
	Settings session.Config
	// Client sends the requests that set up and end faults.
	Client *client.Client
	// Watchers are those of the exploration, and Quiet is an object of the run that no client of a round writes.
	Watchers []*watching.Watcher
	Quiet    *client.Object
}

// Injector injects faults into the rounds on one cluster. A nil one injects nothing.
type Injector struct {
	cluster Cluster
	faults  []*Fault
	// leftOut are the reasons why faults cannot be injected.
	leftOut []string
	reviewer
	// parts are what can be restarted, one at a time. An outage is that of the API server.
	parts      []part
	restarting sync.Mutex
	outage     sync.RWMutex
	// closing ends what the faults have set up.
	closing []func()

	mu    sync.Mutex
	began time.Time
	// interrupted is when the API server was restarted last.
	interrupted time.Time
	effect      []history.Fault
}

// Begin sets up faults on a cluster. It fails with clients.ErrSkipped where that does not permit them.
func Begin(ctx context.Context, selected Selection, cluster Cluster) (*Injector, error) {
	if len(selected.Faults) == 0 {
		return nil, nil
	}
	i := &Injector{cluster: cluster}
	for _, fault := range selected.Faults {
		err := i.prepare(ctx, fault)
		switch {
		case ctx.Err() != nil:
			i.Close()
			return nil, context.Cause(ctx)
		case err != nil && !selected.Possible:
			i.Close()
			return nil, fmt.Errorf("%w: the fault %s cannot be injected: %w", clients.ErrSkipped, fault.Name, err)
		case err != nil:
			i.leftOut = append(i.leftOut, fmt.Sprintf("%s: %v", fault.Name, err))
		default:
			i.faults = append(i.faults, fault)
		}
	}
	return i, nil
}

// prepare sets up one fault.
func (i *Injector) prepare(ctx context.Context, fault *Fault) error {
	for _, feature := range fault.Features {
		if reason := i.cluster.Settings.Unsupported[feature]; reason != "" {
			return fmt.Errorf("%s", reason)
		}
	}
	if fault.prepare == nil {
		return nil
	}
	return fault.prepare(ctx, i)
}

// HasInterrupted reports whether an injected fault has restarted the API server since some time.
func (i *Injector) HasInterrupted(since time.Time) bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.interrupted.After(since)
}

// LeftOut are the faults that the cluster does not permit, with the reasons.
func (i *Injector) LeftOut() []string {
	if i == nil {
		return nil
	}
	return i.leftOut
}

// Drawn are the faults as programs are drawn with them.
func (i *Injector) Drawn() []generate.Fault {
	if i == nil {
		return nil
	}
	var drawn []generate.Fault
	for _, fault := range i.faults {
		drawn = append(drawn, generate.Fault{Name: fault.Name, PerRound: fault.PerRound})
	}
	return drawn
}

// StartRound begins a round. The writer is a client that no program uses.
func (i *Injector) StartRound(writer *clients.Actor) {
	if i == nil {
		return
	}
	i.disarm(writer)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.began, i.effect = writer.Began, nil
}

// EachKind as the step of a fault makes it meet the next two writes of each kind: by the same controller, with the same operation, to the same resource.
const EachKind = "each kind"

// Inject injects the fault that an intent names, on behalf of a client.
func (i *Injector) Inject(ctx context.Context, actor *clients.Actor, intent generate.Intent) error {
	at := -1
	if i != nil {
		at = slices.IndexFunc(i.faults, func(fault *Fault) bool { return fault.Name == intent.Fault })
	}
	if at < 0 {
		return nil // a cluster that does not permit it
	}
	switch fault := i.faults[at]; {
	case fault.react == nil:
		return fault.inject(ctx, i, actor, intent)
	case intent.Step == EachKind:
		i.armForEach(fault)
	default:
		i.arm(fault)
	}
	return nil
}

// AwaitServer waits until an API server that is restarted is there again, so that programs do not end while nothing responds.
func (i *Injector) AwaitServer() {
	if i == nil {
		return
	}
	i.outage.RLock()
	defer i.outage.RUnlock()
}

// EndRound ends the faults of a round, and returns those that had an effect, and the requests of the writer.
func (i *Injector) EndRound() ([]history.Fault, []history.Request) {
	if i == nil {
		return nil, nil
	}
	requests := i.disarm(nil)
	i.mu.Lock()
	defer i.mu.Unlock()
	effect := i.effect
	i.effect = nil
	slices.SortStableFunc(effect, func(a, b history.Fault) int { return cmp.Compare(a.At, b.At) })
	return effect, requests
}

// note records that a fault has an effect.
func (i *Injector) note(name, effect string) { i.noteOn("", name, effect) }

// noteOn records that a fault has an effect on a write.
func (i *Injector) noteOn(write, name, effect string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.effect = append(i.effect, history.Fault{At: time.Since(i.began), Name: name, Effect: effect, Write: write})
}

// Close reverts what the faults have set up.
func (i *Injector) Close() {
	if i == nil {
		return
	}
	for _, end := range slices.Backward(i.closing) {
		end()
	}
}
