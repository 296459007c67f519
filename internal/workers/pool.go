package workers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// ErrClusterLost means that a cluster cannot be tested any longer.
var ErrClusterLost = errors.New("the cluster does not respond")

// Cluster is a cluster that workers can be sent to.
type Cluster struct {
	// Context ends with that of the run, or with the cause ErrClusterLost. Workers are killed then, and nothing is reported of what was
	// not tested.
	Context context.Context
	// Kubeconfig and RequestTimeout say how to reach it; see Job.
	Kubeconfig     []byte
	RequestTimeout time.Duration
	// Slowness is how many times as long as on a fast cluster a behavior may take; 1 where it is 0.
	Slowness float64
	// Session is what a worker, numbered from 1, should know of it.
	Session func(worker int) session.Config
	// Later are needs of which AwaitLater finds out whether they are met: behaviors that have one are not begun before.
	Later      []v1alpha1.Feature
	AwaitLater func()
}

// Event is something that happened to a behavior. Exactly one of Began, Ended and Lost is set.
type Event struct {
	// Cluster is the cluster's position among those of the pool.
	Cluster int
	// Began is the id of a behavior that begins.
	Began string
	// Ended is the report of a behavior that has ended. Again says that it could not be tested, and will be retried.
	Ended *types.SpecReport
	Again bool
	// Lost is the id of a behavior that cannot be tested, for the Reason.
	Lost, Reason string
}

// Pool runs behaviors on clusters, several processes at a time.
type Pool struct {
	// Executable is the runner's own binary.
	Executable string
	// Processes is how many workers run at the same time, over all clusters; up to as many spare ones run beside them what mostly
	// waits. See Workers.
	Processes int
	// Timeout bounds each behavior; FixedTimeout says that it does so on slow clusters, too.
	Timeout      time.Duration
	FixedTimeout bool
	// Durations say how long behaviors took before, by id; those unknown are guessed.
	Durations map[string]time.Duration
}

const (
	// processesPerCore and mostProcesses give the default number of processes. Workers mostly wait for the cluster, so there are
	// more of them than cores; `make bench` compares numbers.
	processesPerCore = 4
	mostProcesses    = 8
	// DefaultTimeout is far beyond what any behavior takes on a healthy cluster, and above what a spec waits for a pod to
	// start and to end on a node that is busy.
	DefaultTimeout = 7 * time.Minute
)

// DefaultProcesses is how many workers run at the same time where nobody says.
func DefaultProcesses() int { return min(processesPerCore*runtime.NumCPU(), mostProcesses) }

const (
	// maxAttempts is how often a behavior is handed out that no worker got to begin.
	maxAttempts = 2
	// maxTries is how often a behavior is tested while the way to the cluster fails.
	maxTries = 5
	// maxGivenUp is how many behaviors of a cluster may fail to be tested in all their tries. When there are more, the way to it
	// is not what fails at times: the others have one try.
	maxGivenUp = 5
)

// Run runs the chosen behaviors on every cluster and reports, one at a time, what happens. It sets all clusters up at the
// same time, and begins with each as soon as it is set up; setUp is false for those that cannot be tested. Of behaviors
// that an interruption (the context) left out there are no events. It fails only where the runner itself has a defect; of
// some behaviors there are no events then either.
func (p Pool) Run(ctx context.Context, clusters int, setUp func(cluster int) (Cluster, bool), chosen []plan.Behavior, notify func(Event)) error {
	r := &poolRun{
		Pool:     p,
		queue:    newQueue(clusters, p.Processes, p.Durations),
		clusters: make([]Cluster, clusters),
		chosen:   chosen,
		attempts: map[string]int{},
		tries:    map[string]int{},
		givenUp:  make([]int, clusters),
		notify:   notify,
	}
	stop := context.AfterFunc(ctx, r.queue.close)
	defer stop()
	var running sync.WaitGroup
	for cluster := range clusters {
		running.Go(r.guarded("set up", func() {
			ready, can := setUp(cluster)
			if !can {
				r.queue.fill(cluster, nil)
				return
			}
			r.clusters[cluster] = ready
			now, later := ready.split(chosen)
			if len(later) == 0 {
				r.queue.fill(cluster, now)
				return
			}
			r.queue.expect()
			r.queue.fill(cluster, now)
			ready.AwaitLater()
			r.queue.fill(cluster, later)
		}))
	}
	for worker := 1; worker <= p.Workers(chosen); worker++ {
		running.Go(r.guarded("follow a worker", func() { r.loop(ctx, worker) }))
	}
	running.Wait()
	return r.crashed
}

// split are the behaviors that can begin at once, and those that cannot.
func (c Cluster) split(behaviors []plan.Behavior) (now, later []plan.Behavior) {
	for _, behavior := range behaviors {
		if slices.ContainsFunc(behavior.Features, func(need v1alpha1.Feature) bool { return slices.Contains(c.Later, need) }) {
			later = append(later, behavior)
		} else {
			now = append(now, behavior)
		}
	}
	return now, later
}

// guarded does something and notes a panic. Nothing is begun after one.
func (r *poolRun) guarded(during string, do func()) func() {
	return func() {
		if err := crash.Caught(during, func() error { do(); return nil }); err != nil {
			r.queue.close()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.crashed = errors.Join(r.crashed, err)
		}
	}
}

// poolRun is one Run of a Pool.
type poolRun struct {
	Pool
	queue    *queue
	clusters []Cluster
	chosen   []plan.Behavior
	mu       sync.Mutex
	// attempts counts how often a behavior was handed out, by cluster and id.
	attempts map[string]int
	// tries counts how often a behavior could not be tested, by cluster and id, and givenUp those of a cluster that have had all
	// their tries.
	tries   map[string]int
	givenUp []int
	notify  func(Event)
	// crashed says which panics of the runner's own were caught.
	crashed error
}

// loop starts one process after the other, as long as there are batches.
func (r *poolRun) loop(ctx context.Context, worker int) {
	spare := worker > r.Processes
	for {
		batch, more := r.queue.next(spare)
		if !more {
			return
		}
		r.queue.done(batch, r.run(ctx, worker, batch))
	}
}

// run has a worker run one batch, and returns what another worker should try.
func (r *poolRun) run(ctx context.Context, worker int, batch *batch) []plan.Behavior {
	ids := batch.ids()
	b := &batchRun{poolRun: r, cluster: batch.cluster, pending: slices.Clone(ids)}
	cluster := r.clusters[batch.cluster]
	if cluster.Context != nil {
		ctx = cluster.Context
	}
	if ctx.Err() != nil {
		return nil
	}
	config := cluster.Session(worker)
	config.Attempts = r.triesOf(batch.cluster, ids)
	process, err := start(r.Executable, Job{
		Kubeconfig: cluster.Kubeconfig, RequestTimeout: cluster.RequestTimeout, Session: config,
		Behaviors: ids, Timeout: r.timeout(cluster),
	})
	if err == nil {
		followed := false
		defer func() {
			if !followed { // but for a panic: what nobody follows may not go on writing to a cluster
				process.kill()
			}
		}()
		err = process.follow(ctx, r.timeout(cluster), b.onMessage)
		followed = true
	}
	if ctx.Err() != nil {
		return nil
	}
	if b.failed != nil {
		err = b.failed
	}
	if process != nil && process.began != "" {
		b.settle(process.began)
		r.send(Event{Cluster: batch.cluster, Lost: process.began, Reason: reason(err)})
	}
	return append(r.again(batch.cluster, b.pending, reason(err)), b.untested...)
}

// timeout bounds each behavior on a cluster.
func (p Pool) timeout(cluster Cluster) time.Duration {
	if p.FixedTimeout {
		return p.Timeout
	}
	return time.Duration(float64(p.Timeout) * max(cluster.Slowness, 1))
}

// Workers is how many workers there are for behaviors, spare ones included.
func (p Pool) Workers(behaviors []plan.Behavior) int {
	spare := 0
	for _, behavior := range behaviors {
		if estimates(p.Durations).classOf(behavior) == waiting {
			spare++
		}
	}
	return p.Processes + min(p.Processes, spare)
}

// requestsEach is how many requests a behavior makes on average.
const requestsEach = 13

// Estimate is how long behaviors will take on a cluster, roughly, where a request takes so long: as long as the
// longest, or as long as all workers need together, and then the Serial ones.
func (p Pool) Estimate(behaviors []plan.Behavior, request time.Duration) time.Duration {
	known := estimates(p.Durations)
	var longest time.Duration
	takes := map[class]time.Duration{}
	for _, behavior := range behaviors {
		one, class := known.of(behavior)+requestsEach*request, known.classOf(behavior)
		takes[class] += one
		if class != alone {
			longest = max(longest, one)
		}
	}
	all, processes, busy := time.Duration(p.Workers(behaviors)), time.Duration(p.Processes), takes[working]+takes[late]
	return takes[alone] + max(longest, busy/processes, (busy+takes[waiting])/all)
}

// batchRun is what one worker makes of its batch.
type batchRun struct {
	*poolRun
	cluster int
	// pending are the behaviors that are not tested yet.
	pending []string
	// untested are those that will be retried.
	untested []plan.Behavior
	// failed says why the worker could not begin.
	failed error
}

// onMessage passes on what the worker reports.
func (b *batchRun) onMessage(m message) {
	switch {
	case m.Began != "":
		b.send(Event{Cluster: b.cluster, Began: m.Began})
	case m.Ended != nil:
		m.Evidence.AttachTo(m.Ended)
		behavior, _ := specs.BehaviorOf(*m.Ended)
		if b.settle(behavior.ID) {
			b.send(Event{Cluster: b.cluster, Ended: m.Ended, Again: b.tryAgain(behavior.ID, *m.Ended)})
		}
	case m.Failed != "":
		b.failed = fmt.Errorf("the worker could not begin: %s", m.Failed)
	}
}

// tryAgain says whether a behavior will be retried from the start: the way to the cluster failed, and may not the
// next time. A verdict stands.
func (b *batchRun) tryAgain(id string, spec types.SpecReport) bool {
	if !spec.State.Is(types.SpecStateFailed|types.SpecStatePanicked|types.SpecStateTimedout) || specs.EvidenceOf(spec).RunError == "" ||
		!b.mayTry(b.cluster, id) {
		return false
	}
	i := slices.IndexFunc(b.chosen, func(behavior plan.Behavior) bool { return behavior.ID == id })
	b.untested = append(b.untested, b.chosen[i])
	return true
}

// mayTry counts a try that came to nothing, and says whether there may be another.
func (r *poolRun) mayTry(cluster int, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries[key(cluster, id)]++; r.tries[key(cluster, id)] >= maxTries {
		r.givenUp[cluster]++
		return false
	}
	return r.givenUp[cluster] <= maxGivenUp
}

// triesOf says of behaviors that could not be tested before how often.
func (r *poolRun) triesOf(cluster int, ids []string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	tries := map[string]int{}
	for _, id := range ids {
		if before := r.tries[key(cluster, id)]; before > 0 {
			tries[id] = before
		}
	}
	return tries
}

// settle takes a behavior off those that are pending. It is false for one that was not.
func (b *batchRun) settle(id string) bool {
	i := slices.Index(b.pending, id)
	if i >= 0 {
		b.pending = slices.Delete(b.pending, i, i+1)
	}
	return i >= 0
}

// again is what may be handed out once more; what was handed out too often is given up.
func (r *poolRun) again(cluster int, pending []string, reason string) []plan.Behavior {
	var again []plan.Behavior
	for _, behavior := range r.chosen {
		if !slices.Contains(pending, behavior.ID) {
			continue
		}
		if r.count(cluster, behavior.ID) < maxAttempts {
			again = append(again, behavior)
			continue
		}
		r.send(Event{Cluster: cluster, Lost: behavior.ID, Reason: "no worker got to it: " + reason})
	}
	return again
}

func (r *poolRun) count(cluster int, id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[key(cluster, id)]++
	return r.attempts[key(cluster, id)]
}

// key names a behavior on a cluster.
func key(cluster int, id string) string { return fmt.Sprint(cluster, " ", id) }

func (r *poolRun) send(event Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify(event)
}

func reason(err error) string {
	if err == nil {
		return "the worker ended without a report of it"
	}
	return err.Error()
}
