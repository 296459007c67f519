package workers

import (
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// guess is how long a behaviour is thought to take that was never measured.
const guess = 300 * time.Millisecond

// share says how much of what is left a batch takes, for each process: small enough that no process is left with a long
// batch while the others are done, large enough that starting processes does not dominate.
const share = 3

// batch is what one worker process is started for: behaviours on one cluster.
type batch struct {
	cluster   int
	behaviors []string
	serial    bool
}

// queue hands out batches: what takes longest first, from the cluster that has most left. Serial behaviours come when
// all others of their cluster are done, and alone.
type queue struct {
	mu        sync.Mutex
	changed   *sync.Cond
	processes int
	durations map[string]time.Duration
	// parallel and serial hold what is left of each cluster, longest first.
	parallel, serial [][]plan.Behavior
	// running counts the batches that are out, a cluster.
	running []int
	// alone marks clusters on which a serial batch is out.
	alone []bool
	// expected counts the clusters of which it is not known yet whether there is anything to do on them.
	expected int
	// closed says that nothing is handed out any more.
	closed bool
}

// newQueue is the queue of so many clusters. What there is to do on each is said later; see fill.
func newQueue(clusters, processes int, durations map[string]time.Duration) *queue {
	q := &queue{
		processes: processes,
		durations: durations,
		parallel:  make([][]plan.Behavior, clusters),
		serial:    make([][]plan.Behavior, clusters),
		running:   make([]int, clusters),
		alone:     make([]bool, clusters),
		expected:  clusters,
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// fill says, once for each cluster, what there is to do on it: nothing, maybe.
func (q *queue) fill(cluster int, behaviors []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected--
	if !q.closed {
		q.add(cluster, behaviors)
	}
	q.changed.Broadcast()
}

func (q *queue) add(cluster int, behaviors []plan.Behavior) {
	for _, behavior := range behaviors {
		if behavior.Serial {
			q.serial[cluster] = append(q.serial[cluster], behavior)
		} else {
			q.parallel[cluster] = append(q.parallel[cluster], behavior)
		}
	}
	for _, list := range [][]plan.Behavior{q.parallel[cluster], q.serial[cluster]} {
		slices.SortStableFunc(list, q.order)
	}
}

// order puts what takes longest first, and last what waits for the collector to learn of a kind: meanwhile it does.
func (q *queue) order(a, b plan.Behavior) int {
	if a.UsesCustomKind() != b.UsesCustomKind() {
		return map[bool]int{true: 1, false: -1}[a.UsesCustomKind()]
	}
	return int(q.duration(b) - q.duration(a))
}

func (q *queue) duration(behavior plan.Behavior) time.Duration {
	if known, is := q.durations[behavior.ID]; is {
		return known
	}
	return guess
}

func (q *queue) total(behaviors []plan.Behavior) time.Duration {
	total := time.Duration(0)
	for _, behavior := range behaviors {
		total += q.duration(behavior)
	}
	return total
}

// next waits for a batch. It is false when nothing is left and nothing can come back.
func (q *queue) next() (batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if taken, is := q.take(); is {
			return taken, true
		}
		if q.idle() {
			return batch{}, false
		}
		q.changed.Wait()
	}
}

// done gives a batch back, with what was not judged.
func (q *queue) done(finished batch, left []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running[finished.cluster]--
	if finished.serial {
		q.alone[finished.cluster] = false
	}
	if !q.closed {
		q.add(finished.cluster, left)
	}
	q.changed.Broadcast()
}

// close drops what has not been handed out, and what comes back later.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	clear(q.parallel)
	clear(q.serial)
	q.changed.Broadcast()
}

func (q *queue) idle() bool {
	if q.closed {
		return true
	}
	if q.expected > 0 {
		return false
	}
	for cluster := range q.running {
		if q.running[cluster] > 0 || len(q.parallel[cluster]) > 0 || len(q.serial[cluster]) > 0 {
			return false
		}
	}
	return true
}

func (q *queue) take() (batch, bool) {
	chosen, most := -1, time.Duration(-1)
	for cluster := range q.parallel {
		ready := len(q.parallel[cluster]) > 0 && !q.alone[cluster] ||
			len(q.serial[cluster]) > 0 && len(q.parallel[cluster]) == 0 && q.running[cluster] == 0
		if left := q.total(q.parallel[cluster]) + q.total(q.serial[cluster]); ready && left > most {
			chosen, most = cluster, left
		}
	}
	if chosen < 0 {
		return batch{}, false
	}
	q.running[chosen]++
	if len(q.parallel[chosen]) > 0 {
		return q.cut(chosen), true
	}
	q.alone[chosen] = true
	taken := batch{cluster: chosen, serial: true, behaviors: ids(q.serial[chosen])}
	q.serial[chosen] = nil
	return taken, true
}

// cut takes a share of what is left of a cluster.
func (q *queue) cut(cluster int) batch {
	left := q.parallel[cluster]
	enough := q.total(left)
	if q.processes > 1 {
		enough /= time.Duration(share * q.processes)
	}
	size, weight := 0, time.Duration(0)
	for size < len(left) && (size == 0 || weight < enough) {
		weight += q.duration(left[size])
		size++
	}
	q.parallel[cluster] = left[size:]
	return batch{cluster: cluster, behaviors: ids(left[:size])}
}

func ids(behaviors []plan.Behavior) []string {
	ids := make([]string, len(behaviors))
	for i, behavior := range behaviors {
		ids[i] = behavior.ID
	}
	return ids
}
