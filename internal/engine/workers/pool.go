package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// ErrClusterLost means that a cluster cannot be tested any longer.
var ErrClusterLost = errors.New("the cluster does not respond")

// Cluster is a cluster for workers.
type Cluster struct {
	// Context ends with that of the run, or with the cause ErrClusterLost. Workers are then killed, and behaviors that were not tested are
	// not reported.
	Context context.Context
	// Kubeconfig and RequestTimeout configure the connection; see Job.
	Kubeconfig     []byte
	RequestTimeout time.Duration
	// Lend gets the credentials of the kubeconfig's exec plugin; nil where it has none.
	Lend credentials.Lend
	// Extra is the number of workers that join the pool when the cluster is set up; see Pool.Extra.
	Extra int
	// Slowness is the factor for the timeouts of behaviors, relative to a fast cluster; 0 means 1.
	Slowness float64
	// Session returns the configuration of a worker, numbered from 1.
	Session func(worker int) session.Config
	// Behaviors are the part of the pool's behaviors to run on this cluster.
	Behaviors []plan.Behavior
	// SpareNode is set when disruptive behaviors have a node for themselves.
	SpareNode bool
}

// Event is an event of a behavior. Exactly one of Began, Ended and Lost is set.
type Event struct {
	// Cluster is the index of the cluster in the pool.
	Cluster int
	// Began is the id of a behavior that starts.
	Began string
	// Ended is the report of a behavior that has ended. Retried is set when it could not be tested, and will be retried.
	Ended   *types.SpecReport
	Retried bool
	// Lost is the id of a behavior that cannot be tested, for the Reason.
	Lost, Reason string
}

// Pool runs behaviors on clusters in parallel processes.
type Pool struct {
	// Executable is the runner's own binary.
	Executable string
	// Processes is the number of parallel workers, over all clusters, or 0 for DefaultProcesses, and more on a cluster that is far away:
	// see Extra. Up to as many spare workers run behaviors that mostly wait: see Workers.
	Processes int
	// Columns is the number of times that each behavior runs: for every cluster and resource under test. 0 if that is not known.
	Columns int
	// Timeout limits each behavior; 0 for DefaultTimeout, multiplied by the slowness of the cluster.
	Timeout time.Duration
	// Durations are those of earlier runs, by id; others are estimated.
	Durations map[string]time.Duration
	// Note is called with each value of the header Authorization that a worker sends; nil for not. It may be called concurrently.
	Note func(authorization string)
}

const (
	// processesPerCore and maxProcesses determine the default number of processes. Workers mostly wait for the cluster, so there are more
	// of them than cores; `make bench` compares numbers.
	processesPerCore = 4
	maxProcesses     = 8
	// DefaultTimeout is far beyond what any behavior takes on a healthy cluster, and above the timeouts for pods on a busy node and for busy
	// controllers.
	DefaultTimeout = 30 * time.Minute
)

func (p Pool) processes() int { return cmp.Or(p.Processes, DefaultProcesses()) }

// DefaultProcesses is the default number of parallel workers.
func DefaultProcesses() int { return min(processesPerCore*runtime.NumCPU(), maxProcesses) }

const (
	// maxAttempts limits how often a behavior is assigned that no worker could start.
	maxAttempts = 2
	// maxTries limits the attempts of a behavior that could not be tested.
	maxTries = 5
	// maxTrying limits the time of these attempts: after it, no other one begins, because a lost node would make each one as long.
	maxTrying = 3 * time.Minute
	// maxGivenUp limits the behaviors of a cluster that may use up all their attempts. Beyond that the connection is considered broken, and
	// the others get one attempt.
	maxGivenUp = 5
)

// Run runs behaviors on every cluster and calls notify, one event at a time. It sets up all clusters in parallel, and starts
// with each as soon as it is set up; setUp is false for those that cannot be tested. There are no events for behaviors that an interruption
// (the context) left out. The chosen ones are those of all clusters. It fails only after a panic of the runner; events may then be missing, too.
func (p Pool) Run(ctx context.Context, clusters int, setUp func(cluster int) (Cluster, bool), chosen []plan.Behavior, notify func(Event)) error {
	r := &poolRun{
		Pool:     p,
		queue:    newQueue(clusters, p.processes(), p.Durations),
		clusters: make([]Cluster, clusters),
		chosen:   chosen,
		attempts: map[string]int{},
		tries:    map[string]int{},
		trying:   map[string]time.Duration{},
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
			for _, worker := range r.join(ready.Extra) {
				running.Go(r.guarded("follow a worker", func() { r.loop(ctx, worker, false) }))
			}
			r.queue.fill(cluster, ready.assigned())
		}))
	}
	for worker := 1; worker <= p.Workers(chosen); worker++ {
		running.Go(r.guarded("follow a worker", func() { r.loop(ctx, worker, worker > p.processes()) }))
	}
	running.Wait()
	return r.crashed
}

// assigned returns the behaviors. Those that disturb a node use the spare one.
func (c Cluster) assigned() []plan.Behavior {
	assigned := slices.Clone(c.Behaviors)
	for i, behavior := range assigned {
		assigned[i].OnSpareNode = c.SpareNode && slices.ContainsFunc(behavior.Disturbs, disturbsNode)
	}
	return assigned
}

func disturbsNode(features []v1alpha1.Feature) bool { return slices.Contains(features, v1alpha1.Node) }

// guarded calls a function and records a panic. Nothing starts after one.
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
	// attempts counts how often a behavior was assigned, by cluster and id.
	attempts map[string]int
	// tries counts how often a behavior could not be tested, by cluster and id, trying is the time that this took, and givenUp counts the
	// behaviors of a cluster that have used up their attempts.
	tries   map[string]int
	trying  map[string]time.Duration
	givenUp []int
	notify  func(Event)
	// joined is the number of workers that have joined.
	joined int
	// crashed contains recovered panics of the runner.
	crashed error
}

// join adds workers, and returns their numbers.
func (r *poolRun) join(extra int) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var numbers []int
	for ; r.joined < extra; r.joined++ { // several clusters share the workers that one of them needs
		numbers = append(numbers, r.Workers(r.chosen)+r.joined+1)
	}
	r.queue.grow(len(numbers))
	return numbers
}

// loop starts one process after the other, as long as there are batches.
func (r *poolRun) loop(ctx context.Context, worker int, spare bool) {
	for {
		batch, more := r.queue.next(spare)
		if !more {
			return
		}
		r.queue.done(batch, r.run(ctx, worker, batch))
	}
}

// run lets a worker run one batch, and returns what another worker must retry.
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
		Behaviors: ids, Files: batch.files(), Timeout: r.timeout(cluster),
	}, cluster.Lend)
	if err == nil {
		followed := false
		defer func() {
			if !followed { // after a panic, an unsupervised worker must not write to a cluster
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
	return append(r.retryable(batch.cluster, b.pending, reason(err)), b.untested...)
}

// timeout limits each behavior on a cluster.
func (p Pool) timeout(cluster Cluster) time.Duration {
	if p.Timeout != 0 {
		return p.Timeout
	}
	return time.Duration(float64(DefaultTimeout) * max(cluster.Slowness, 1))
}

// Workers returns the number of workers for behaviors, including spare ones: at least one, and no more than have something to run.
func (p Pool) Workers(behaviors []plan.Behavior) int {
	spare := 0
	for _, behavior := range behaviors {
		if estimates(p.Durations).classOf(behavior) == waiting {
			spare++
		}
	}
	return max(1, min(p.processes()+min(p.processes(), spare), p.runs(behaviors)))
}

// runs is the number of runs of behaviors, over all columns.
func (p Pool) runs(behaviors []plan.Behavior) int {
	if p.Columns == 0 {
		return math.MaxInt
	}
	return p.Columns * len(behaviors)
}

const (
	// workEach is the average time that a worker, and the server on its behalf, is busy with one request.
	workEach = 50 * time.Millisecond
	// maxExtra limits the workers that join, as a multiple of the processes.
	maxExtra = 2
)

// Extra is the number of workers that join on a cluster with this network distance, so that as many as usual are busy at a time. It is 0
// when the user has set the number of processes, and nearby, where a request takes longer only because the machine is busy.
func (p Pool) Extra(behaviors []plan.Behavior, distance time.Duration) int {
	if p.Processes != 0 || distance < workEach {
		return 0
	}
	extra := int(float64(p.processes()) * min(float64(distance)/float64(workEach), maxExtra))
	return max(0, min(extra, p.runs(behaviors)-p.Workers(behaviors)))
}

// requestsEach is the average number of requests of a behavior.
const requestsEach = 13

// Estimate returns roughly how long behaviors take on a cluster with this duration of a request: as long as the longest one, or as all
// workers need together, plus the Serial ones.
func (p Pool) Estimate(behaviors []plan.Behavior, request time.Duration) time.Duration {
	known := estimates(p.Durations)
	var longest time.Duration
	takes := map[class]time.Duration{}
	for _, behavior := range behaviors {
		if behavior.Skipped {
			continue
		}
		one, class := known.of(behavior)+requestsEach*request, known.classOf(behavior)
		takes[class] += one
		if class != alone {
			longest = max(longest, one)
		}
	}
	all, processes, busy := time.Duration(p.Workers(behaviors)), time.Duration(p.processes()), takes[working]+takes[late]
	return takes[alone] + max(longest, busy/processes, (busy+takes[waiting])/all)
}

// batchRun is the run of one batch by a worker.
type batchRun struct {
	*poolRun
	cluster int
	// pending are the behaviors that were not tested yet.
	pending []string
	// untested are the behaviors to retry.
	untested []plan.Behavior
	// failed is why the worker could not start.
	failed error
}

// onMessage handles a message of the worker.
func (b *batchRun) onMessage(m message) {
	switch {
	case m.Sent != "" && b.Note != nil:
		b.Note(m.Sent)
	case m.Began != "":
		b.send(Event{Cluster: b.cluster, Began: m.Began})
	case m.Ended != nil:
		m.Evidence.AttachTo(m.Ended)
		behavior, _ := specs.BehaviorOf(*m.Ended)
		if b.settle(behavior.ID) {
			b.send(Event{Cluster: b.cluster, Ended: m.Ended, Retried: b.retries(behavior.ID, *m.Ended)})
		}
	case m.Failed != "":
		b.failed = fmt.Errorf("the worker could not start: %s", m.Failed)
	}
}

// retries reports whether a behavior is retried from the start, because it could not be tested. Results are never retried.
func (b *batchRun) retries(id string, spec types.SpecReport) bool {
	if !spec.State.Is(types.SpecStateFailed|types.SpecStatePanicked|types.SpecStateTimedout) || specs.EvidenceOf(spec).RunError == "" ||
		!b.countAttempt(b.cluster, id, spec.RunTime) {
		return false
	}
	i := slices.IndexFunc(b.chosen, func(behavior plan.Behavior) bool { return behavior.ID == id })
	b.untested = append(b.untested, b.chosen[i])
	return true
}

// countAttempt counts an attempt without a result and the time it took, and reports whether there may be another.
func (r *poolRun) countAttempt(cluster int, id string, took time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempted := key(cluster, id)
	r.tries[attempted]++
	r.trying[attempted] += took
	if r.tries[attempted] >= maxTries || r.trying[attempted] >= maxTrying {
		r.givenUp[cluster]++
		return false
	}
	return r.givenUp[cluster] <= maxGivenUp
}

// triesOf returns the number of attempts of behaviors that could not be tested.
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

// settle removes a behavior from the pending ones. It is false if it was not pending.
func (b *batchRun) settle(id string) bool {
	i := slices.Index(b.pending, id)
	if i >= 0 {
		b.pending = slices.Delete(b.pending, i, i+1)
	}
	return i >= 0
}

// retryable returns the behaviors that may be assigned once more, and gives up the others.
func (r *poolRun) retryable(cluster int, pending []string, reason string) []plan.Behavior {
	var again []plan.Behavior
	for _, behavior := range r.chosen {
		if !slices.Contains(pending, behavior.ID) {
			continue
		}
		if r.count(cluster, behavior.ID) < maxAttempts {
			again = append(again, behavior)
			continue
		}
		r.send(Event{Cluster: cluster, Lost: behavior.ID, Reason: "no worker picked it up: " + reason})
	}
	return again
}

func (r *poolRun) count(cluster int, id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[key(cluster, id)]++
	return r.attempts[key(cluster, id)]
}

// key identifies a behavior on a cluster.
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
