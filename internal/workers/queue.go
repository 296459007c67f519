package workers

import (
	"cmp"
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

// mostlyWaits is how long a behaviour takes that mostly waits: for a controller that comes back after some seconds, or for a
// grace period to pass. It costs next to nothing meanwhile, so spare workers run such beside what keeps the others busy.
const mostlyWaits = 5 * time.Second

// share says how much of what is left a batch takes, for each process: small enough that no process is left with a long
// batch while the others are done, large enough that starting processes, of some 150 ms of CPU each, does not dominate.
const share = 2

// batch is what one worker process is started for: behaviours on one cluster.
type batch struct {
	cluster   int
	behaviors []plan.Behavior
}

func (b *batch) ids() []string {
	ids := make([]string, len(b.behaviors))
	for i, behavior := range b.behaviors {
		ids[i] = behavior.ID
	}
	return ids
}

// queue hands out batches: what is most urgent first, from the cluster that has most left. Serial behaviours come when those
// that they disturb are done, and meanwhile none of these is begun. Only what waits for the collector to learn of a kind comes
// after all of them: meanwhile it does.
type queue struct {
	mu        sync.Mutex
	changed   *sync.Cond
	processes int
	durations map[string]time.Duration
	// parallel, waiting, serial and late hold what is left of each cluster, in the order in which it is handed out. Waiting are
	// those that mostly wait.
	parallel, waiting, serial, late [][]plan.Behavior
	// out are the batches that are handed out, a cluster.
	out [][]*batch
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
		waiting:   make([][]plan.Behavior, clusters),
		serial:    make([][]plan.Behavior, clusters),
		late:      make([][]plan.Behavior, clusters),
		out:       make([][]*batch, clusters),
		expected:  clusters,
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// expect says that there will be more to do on a cluster than what is said first.
func (q *queue) expect() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected++
}

// fill says, once for each cluster and each time that more is expected, what there is to do on it: nothing, maybe.
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
		case q.mostlyWaits(behavior):
			list = &q.waiting[cluster]
		}
		*list = append(*list, behavior)
	}
	for _, list := range [][]plan.Behavior{q.parallel[cluster], q.waiting[cluster], q.serial[cluster], q.late[cluster]} {
		slices.SortStableFunc(list, func(a, b plan.Behavior) int {
			return cmp.Compare(q.urgency(cluster, b), q.urgency(cluster, a))
		})
	}
}

// urgency is how long a behaviour takes, and the Serial ones after it that wait for its end but not for that of all others.
func (q *queue) urgency(cluster int, behavior plan.Behavior) time.Duration {
	urgency := q.duration(behavior)
	for _, serial := range q.serial[cluster] {
		if len(serial.Disturbs) > 0 && !behavior.Serial && serial.Conflicts(behavior) {
			urgency += q.duration(serial)
		}
	}
	return urgency
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

// mostlyWaits says whether a behaviour mostly waits.
func (q *queue) mostlyWaits(behavior plan.Behavior) bool {
	return !behavior.Serial && !behavior.SharedKind && q.duration(behavior) >= mostlyWaits
}

func (q *queue) total(behaviors []plan.Behavior) time.Duration {
	total := time.Duration(0)
	for _, behavior := range behaviors {
		total += q.duration(behavior)
	}
	return total
}

// next waits for a batch. It is false when nothing is left and nothing can come back. A spare worker gets only what mostly waits.
func (q *queue) next(spare bool) (*batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if taken, is := q.take(spare); is {
			return taken, true
		}
		if q.idle() {
			return nil, false
		}
		q.changed.Wait()
	}
}

// done gives a batch back, with what was not judged.
func (q *queue) done(finished *batch, left []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out[finished.cluster] = slices.DeleteFunc(q.out[finished.cluster], func(b *batch) bool { return b == finished })
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
	clear(q.waiting)
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
	for cluster := range q.out {
		if len(q.out[cluster]) > 0 || q.left(cluster) > 0 {
			return false
		}
	}
	return true
}

// left counts what is left of a cluster.
func (q *queue) left(cluster int) int {
	return len(q.parallel[cluster]) + len(q.waiting[cluster]) + len(q.serial[cluster]) + len(q.late[cluster])
}

// take is the next batch, of the cluster that has most left. It is false when nothing can be handed out now.
func (q *queue) take(spare bool) (*batch, bool) {
	byWork := make([]int, len(q.out))
	for cluster := range byWork {
		byWork[cluster] = cluster
	}
	work := func(cluster int) time.Duration {
		return q.total(q.parallel[cluster]) + q.total(q.waiting[cluster]) + q.total(q.serial[cluster]) + q.total(q.late[cluster])
	}
	slices.SortStableFunc(byWork, func(a, b int) int { return cmp.Compare(work(b), work(a)) })
	takeOf := q.takeOf
	if spare {
		takeOf = q.takeWaiting
	}
	for _, cluster := range byWork {
		if taken := takeOf(cluster); taken != nil {
			q.out[cluster] = append(q.out[cluster], taken)
			return taken, true
		}
	}
	return nil, false
}

// takeOf is the next batch of a cluster, nil if nothing can be handed out now.
func (q *queue) takeOf(cluster int) *batch {
	if due := q.due(cluster); len(due) > 0 {
		return q.hand(&q.serial[cluster], &batch{cluster: cluster, behaviors: due})
	}
	if free := without(q.parallel[cluster], q.running(cluster)); len(free) > 0 {
		return q.hand(&q.parallel[cluster], q.cut(cluster, free))
	}
	if taken := q.takeWaiting(cluster); taken != nil {
		return taken
	}
	if len(q.parallel[cluster])+len(q.waiting[cluster]) > 0 {
		return nil
	}
	if free := without(q.late[cluster], slices.Concat(q.running(cluster), q.serial[cluster])); len(free) > 0 {
		return q.hand(&q.late[cluster], q.cut(cluster, free))
	}
	return nil
}

// takeWaiting are behaviours that mostly wait, nil if there are none that can be handed out now.
func (q *queue) takeWaiting(cluster int) *batch {
	free := without(q.waiting[cluster], q.running(cluster))
	if len(free) == 0 {
		return nil
	}
	return q.hand(&q.waiting[cluster], q.cut(cluster, free))
}

// due are Serial behaviours that disturb the same, when nothing that they disturb is running or left.
func (q *queue) due(cluster int) []plan.Behavior {
	free := without(q.serial[cluster], slices.Concat(q.running(cluster), q.parallel[cluster], q.waiting[cluster]))
	if len(free) == 0 {
		return nil
	}
	first := free[0]
	return slices.DeleteFunc(free, func(b plan.Behavior) bool { return !slices.EqualFunc(b.Disturbs, first.Disturbs, slices.Equal) })
}

// running are the behaviours that are handed out.
func (q *queue) running(cluster int) []plan.Behavior {
	var running []plan.Behavior
	for _, batch := range q.out[cluster] {
		running = append(running, batch.behaviors...)
	}
	return running
}

// without are those that conflict with none of the others.
func without(behaviors, others []plan.Behavior) []plan.Behavior {
	return slices.DeleteFunc(slices.Clone(behaviors), func(b plan.Behavior) bool {
		return slices.ContainsFunc(others, b.Conflicts)
	})
}

// cut takes a share of what can be handed out: what comes first.
func (q *queue) cut(cluster int, free []plan.Behavior) *batch {
	enough := q.total(free)
	if q.processes > 1 {
		enough /= time.Duration(share * q.processes)
	}
	size, weight := 0, time.Duration(0)
	for size < len(free) && (size == 0 || weight < enough) {
		weight += q.duration(free[size])
		size++
	}
	return &batch{cluster: cluster, behaviors: free[:size]}
}

// hand takes a batch off a list.
func (q *queue) hand(list *[]plan.Behavior, taken *batch) *batch {
	*list = slices.DeleteFunc(*list, func(b plan.Behavior) bool {
		return slices.ContainsFunc(taken.behaviors, func(t plan.Behavior) bool { return t.ID == b.ID })
	})
	return taken
}
