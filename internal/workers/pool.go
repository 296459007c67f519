package workers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// Cluster is a cluster that workers can be sent to.
type Cluster struct {
	// Connection says how to reach it; see Job.
	Connection []string
	// Terms are the terms for a worker, numbered from 1.
	Terms func(worker int) framework.Terms
}

// Event is something that a run's progress shows. Exactly one of Began, Ended and Lost is set.
type Event struct {
	// Cluster is the cluster's position among those of the pool.
	Cluster int
	// Began is the id of a behaviour that begins.
	Began string
	// Ended is the report of a behaviour that has ended.
	Ended *types.SpecReport
	// Lost is the id of a behaviour that cannot be judged, for the Reason.
	Lost, Reason string
}

// Pool runs behaviours on clusters, several processes at a time.
type Pool struct {
	// Executable is the runner's own binary.
	Executable string
	// Processes is how many workers run at the same time, over all clusters.
	Processes int
	// Timeout bounds each behaviour.
	Timeout time.Duration
	// Durations say how long behaviours took before, by id; those unknown are guessed.
	Durations map[string]time.Duration
}

// attempts is how often a behaviour is handed out that no worker got to begin.
const attempts = 2

// Run judges the chosen behaviours on every cluster and tells, one at a time, what happens. It visits the clusters all at
// the same time, and begins with each as soon as its visit is over; visit is false for those that cannot be judged.
// Behaviours that an interruption (the context) left out are not told of.
func (p Pool) Run(ctx context.Context, clusters int, visit func(cluster int) (Cluster, bool), chosen []plan.Behavior, tell func(Event)) {
	work := &work{
		Pool:     p,
		queue:    newQueue(clusters, p.Processes, p.Durations),
		clusters: make([]Cluster, clusters),
		chosen:   chosen,
		handed:   map[string]int{},
		tell:     tell,
	}
	stop := context.AfterFunc(ctx, work.queue.close)
	defer stop()
	var running sync.WaitGroup
	for cluster := range clusters {
		running.Go(func() {
			var behaviors []plan.Behavior
			if visited, can := visit(cluster); can {
				work.clusters[cluster], behaviors = visited, chosen
			}
			work.queue.settle(cluster, behaviors)
		})
	}
	for worker := 1; worker <= p.Processes; worker++ {
		running.Go(func() { work.loop(ctx, worker) })
	}
	running.Wait()
}

// work is one Run of a Pool.
type work struct {
	Pool
	queue    *queue
	clusters []Cluster
	chosen   []plan.Behavior
	mu       sync.Mutex
	// handed counts how often a behaviour was handed out, by cluster and id.
	handed map[string]int
	tell   func(Event)
}

// loop starts one process after the other, as long as there are batches.
func (w *work) loop(ctx context.Context, worker int) {
	for {
		batch, more := w.queue.next()
		if !more {
			return
		}
		w.queue.done(batch, w.run(ctx, worker, batch))
	}
}

// run has one batch judged and returns what another worker should try.
func (w *work) run(ctx context.Context, worker int, batch batch) []plan.Behavior {
	cluster := w.clusters[batch.cluster]
	pending := slices.Clone(batch.behaviors)
	settled := func(id string) {
		pending = slices.DeleteFunc(pending, func(other string) bool { return other == id })
	}
	var failed error
	process, err := start(w.Executable, Job{
		Connection: cluster.Connection, Terms: cluster.Terms(worker), Behaviors: batch.behaviors, Timeout: w.Timeout,
	})
	if err == nil {
		err = process.follow(ctx, w.Timeout, func(m message) {
			switch {
			case m.Began != "":
				w.say(Event{Cluster: batch.cluster, Began: m.Began})
			case m.Ended != nil:
				contract, _ := framework.BehaviorOf(*m.Ended)
				if slices.Contains(pending, contract.ID) {
					settled(contract.ID)
					w.say(Event{Cluster: batch.cluster, Ended: m.Ended})
				}
			case m.Failed != "":
				failed = fmt.Errorf("the worker could not begin: %s", m.Failed)
			}
		})
	}
	if ctx.Err() != nil {
		return nil
	}
	if failed != nil {
		err = failed
	}
	if process != nil && process.began != "" {
		settled(process.began)
		w.say(Event{Cluster: batch.cluster, Lost: process.began, Reason: reason(err)})
	}
	return w.again(batch.cluster, pending, reason(err))
}

// again is what may be handed out once more; what was handed out too often is given up.
func (w *work) again(cluster int, pending []string, reason string) []plan.Behavior {
	var again []plan.Behavior
	for _, behavior := range w.chosen {
		if !slices.Contains(pending, behavior.ID) {
			continue
		}
		if w.count(cluster, behavior.ID) < attempts {
			again = append(again, behavior)
			continue
		}
		w.say(Event{Cluster: cluster, Lost: behavior.ID, Reason: "no worker got to it: " + reason})
	}
	return again
}

func (w *work) count(cluster int, id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(cluster, " ", id)
	w.handed[key]++
	return w.handed[key]
}

func (w *work) say(event Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(event)
}

func reason(err error) string {
	if err == nil {
		return "the worker ended without a report of it"
	}
	return err.Error()
}
