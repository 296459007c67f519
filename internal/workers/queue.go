package workers

import (
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// A behaviour that was never measured is thought to take a guess, or namespaceGuess where the end of a namespace may have to be
// waited for: the namespace controller begins 5 s after the delete. Where the garbage collector has to learn of a kind it is
// collectorGuess: it looks every 30 s.
const (
	guess          = 300 * time.Millisecond
	namespaceGuess = 7 * time.Second
	collectorGuess = 30 * time.Second
)

// share says how much of what is left a batch takes, for each process: small enough that no process is left with a long
// batch while the others are done, large enough that starting processes, of some 150 ms of CPU each, does not dominate.
const share = 2

// batch is what one worker process is started for: behaviours on one cluster.
type batch struct {
	cluster   int
	behaviors []string
	serial    bool
}

// queue hands out batches: what takes longest first, from the cluster that has most left. Serial behaviours come when the
// others of their cluster are done, and alone. Only what waits for the collector to learn of a kind comes after them: meanwhile
// it does.
type queue struct {
	mu        sync.Mutex
	changed   *sync.Cond
	processes int
	durations map[string]time.Duration
	// parallel, serial and late hold what is left of each cluster, longest first. They are handed out in this order.
	parallel, serial, late [][]plan.Behavior
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
		late:      make([][]plan.Behavior, clusters),
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
		list := &q.parallel[cluster]
		switch {
		case behavior.Serial:
			list = &q.serial[cluster]
		case behavior.SharedKind:
			list = &q.late[cluster]
		}
		*list = append(*list, behavior)
	}
	for _, list := range [][]plan.Behavior{q.parallel[cluster], q.serial[cluster], q.late[cluster]} {
		slices.SortStableFunc(list, func(a, b plan.Behavior) int { return int(q.duration(b) - q.duration(a)) })
	}
}

func (q *queue) duration(behavior plan.Behavior) time.Duration {
	if known, is := q.durations[behavior.ID]; is {
		return known
	}
	switch {
	case behavior.AwaitsCollector() && !behavior.SharedKind:
		return collectorGuess
	case behavior.AwaitsNamespace():
		return namespaceGuess
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
	clear(q.late)
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
		if q.running[cluster] > 0 || q.left(cluster) > 0 {
			return false
		}
	}
	return true
}

// left counts what is left of a cluster.
func (q *queue) left(cluster int) int {
	return len(q.parallel[cluster]) + len(q.serial[cluster]) + len(q.late[cluster])
}

func (q *queue) take() (batch, bool) {
	chosen, most := -1, time.Duration(-1)
	for cluster := range q.running {
		left := q.total(q.parallel[cluster]) + q.total(q.serial[cluster]) + q.total(q.late[cluster])
		if q.ready(cluster) && left > most {
			chosen, most = cluster, left
		}
	}
	if chosen < 0 {
		return batch{}, false
	}
	q.running[chosen]++
	switch {
	case len(q.parallel[chosen]) > 0:
		return q.cut(q.parallel, chosen), true
	case len(q.serial[chosen]) > 0:
		q.alone[chosen] = true
		taken := batch{cluster: chosen, serial: true, behaviors: ids(q.serial[chosen])}
		q.serial[chosen] = nil
		return taken, true
	}
	return q.cut(q.late, chosen), true
}

// ready says whether something can be handed out of a cluster now.
func (q *queue) ready(cluster int) bool {
	serialIsNext := len(q.parallel[cluster]) == 0 && len(q.serial[cluster]) > 0
	return q.left(cluster) > 0 && !q.alone[cluster] && (!serialIsNext || q.running[cluster] == 0)
}

// cut takes a share of what is left of a cluster in one of its lists.
func (q *queue) cut(lists [][]plan.Behavior, cluster int) batch {
	left := lists[cluster]
	enough := q.total(left)
	if q.processes > 1 {
		enough /= time.Duration(share * q.processes)
	}
	size, weight := 0, time.Duration(0)
	for size < len(left) && (size == 0 || weight < enough) {
		weight += q.duration(left[size])
		size++
	}
	lists[cluster] = left[size:]
	return batch{cluster: cluster, behaviors: ids(left[:size])}
}

func ids(behaviors []plan.Behavior) []string {
	ids := make([]string, len(behaviors))
	for i, behavior := range behaviors {
		ids[i] = behavior.ID
	}
	return ids
}
