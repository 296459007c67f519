package workers

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/plan"
)

// How long a behavior takes that was never measured: namespaceGuess where the namespace controller must act, which begins 5 s after the
// delete, collectorGuess where the garbage collector must learn of a kind, which it does every 30 s, and guess otherwise.
const (
	guess          = 300 * time.Millisecond
	namespaceGuess = 7 * time.Second
	collectorGuess = 30 * time.Second
)

// mostlyWaits is how long a behavior takes that mostly waits for a controller or a grace period. It needs next to no CPU, so spare
// workers run such behaviors.
const mostlyWaits = 5 * time.Second

// estimates are the durations of behaviors in earlier runs, by id.
type estimates map[string]time.Duration

func (e estimates) of(behavior plan.Behavior) time.Duration {
	if known, is := e[behavior.ID]; is {
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

func (e estimates) total(behaviors []plan.Behavior) time.Duration {
	total := time.Duration(0)
	for _, behavior := range behaviors {
		total += e.of(behavior)
	}
	return total
}

// class says when a behavior is handed out. The order is that of the queue.
type class int

const (
	// alone behaviors are Serial. They run once nothing is left or running that they disturb, and meanwhile none of that begins.
	alone class = iota
	// working behaviors are all others.
	working
	// waiting behaviors mostly wait.
	waiting
	// late behaviors use the kind that the run defines. They come last, because the garbage collector has learned of it by then.
	late
)

func (e estimates) classOf(behavior plan.Behavior) class {
	switch {
	case behavior.Serial:
		return alone
	case behavior.SharedKind:
		return late
	case e.of(behavior) >= mostlyWaits:
		return waiting
	}
	return working
}

// share is the part of what is left that a batch takes, for each process: small enough that no process is left with a long batch at the
// end, and large enough that starting processes, of some 150 ms of CPU each, does not dominate.
const share = 2

// batch is what one worker process is started for: behaviors on one cluster.
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

// queue hands out batches by class and urgency, from the cluster that has most left.
type queue struct {
	estimates
	mu        sync.Mutex
	changed   *sync.Cond
	processes int
	// left is what is not handed out yet, by cluster, in order of class and urgency, and out what is.
	left [][]plan.Behavior
	out  [][]*batch
	// expected counts the fills to come.
	expected int
	// closed is set once nothing is handed out any more.
	closed bool
}

// newQueue makes the queue of a number of clusters, each to be filled.
func newQueue(clusters, processes int, known map[string]time.Duration) *queue {
	q := &queue{
		estimates: known, processes: processes, left: make([][]plan.Behavior, clusters), out: make([][]*batch, clusters), expected: clusters,
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// expect announces one more fill.
func (q *queue) expect() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected++
}

// fill adds behaviors of a cluster, once for each cluster and each fill that was announced. There may be none.
func (q *queue) fill(cluster int, behaviors []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected--
	q.add(cluster, behaviors)
}

func (q *queue) add(cluster int, behaviors []plan.Behavior) {
	if q.closed {
		behaviors = nil
	}
	q.left[cluster] = append(q.left[cluster], behaviors...)
	serial := q.leftOf(cluster, alone)
	slices.SortStableFunc(q.left[cluster], func(a, b plan.Behavior) int {
		return cmp.Or(cmp.Compare(q.classOf(a), q.classOf(b)), cmp.Compare(q.urgency(b, serial), q.urgency(a, serial)))
	})
	q.changed.Broadcast()
}

// urgency is the duration of a behavior, and of the Serial ones that wait for its end but not for that of all others.
func (q *queue) urgency(behavior plan.Behavior, serial []plan.Behavior) time.Duration {
	urgency := q.of(behavior)
	for _, other := range serial {
		if len(other.Disturbs) > 0 && !behavior.Serial && other.Conflicts(behavior) {
			urgency += q.of(other)
		}
	}
	return urgency
}

// leftOf is what is left of some classes.
func (q *queue) leftOf(cluster int, classes ...class) []plan.Behavior {
	return slices.DeleteFunc(slices.Clone(q.left[cluster]), func(b plan.Behavior) bool { return !slices.Contains(classes, q.classOf(b)) })
}

// next waits for a batch. It returns false when nothing is left and nothing can come back. A spare worker gets only what mostly waits.
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

// done returns a batch, with what is to be run again.
func (q *queue) done(finished *batch, again []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out[finished.cluster] = slices.DeleteFunc(q.out[finished.cluster], func(b *batch) bool { return b == finished })
	q.add(finished.cluster, again)
}

// close drops what is not handed out, and what comes back later.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	clear(q.left)
	q.changed.Broadcast()
}

func (q *queue) idle() bool {
	empty := func(cluster int) bool { return len(q.left[cluster])+len(q.out[cluster]) == 0 }
	return q.closed || q.expected == 0 && !slices.ContainsFunc(q.byWork(), func(cluster int) bool { return !empty(cluster) })
}

// byWork are the clusters, the one that has most left first.
func (q *queue) byWork() []int {
	clusters := make([]int, len(q.left))
	for cluster := range clusters {
		clusters[cluster] = cluster
	}
	slices.SortStableFunc(clusters, func(a, b int) int { return cmp.Compare(q.total(q.left[b]), q.total(q.left[a])) })
	return clusters
}

// take returns the next batch, and false when nothing can be handed out now.
func (q *queue) take(spare bool) (*batch, bool) {
	for _, cluster := range q.byWork() {
		if behaviors := q.nextOf(cluster, spare); len(behaviors) > 0 {
			taken := &batch{cluster: cluster, behaviors: behaviors}
			q.left[cluster] = slices.DeleteFunc(q.left[cluster], func(b plan.Behavior) bool { return slices.Contains(taken.ids(), b.ID) })
			q.out[cluster] = append(q.out[cluster], taken)
			return taken, true
		}
	}
	return nil, false
}

// nextOf returns the behaviors of a cluster's next batch; none where none can be handed out now.
func (q *queue) nextOf(cluster int, spare bool) []plan.Behavior {
	var running []plan.Behavior
	for _, batch := range q.out[cluster] {
		running = append(running, batch.behaviors...)
	}
	serial, others := q.leftOf(cluster, alone), q.leftOf(cluster, working, waiting)
	next := q.cut(without(q.leftOf(cluster, waiting), running))
	if spare {
		return next
	}
	if due := without(serial, slices.Concat(running, others)); len(due) > 0 { // those that disturb the same
		return slices.DeleteFunc(due, disturbingOther(due[0]))
	}
	if free := without(q.leftOf(cluster, working), running); len(free) > 0 {
		return q.cut(free)
	}
	if len(others) > 0 {
		return next
	}
	return q.cut(without(q.leftOf(cluster, late), slices.Concat(running, serial)))
}

// disturbingOther reports whether a behavior disturbs others than this one.
func disturbingOther(first plan.Behavior) func(plan.Behavior) bool {
	return func(b plan.Behavior) bool { return !slices.EqualFunc(b.Disturbs, first.Disturbs, slices.Equal) }
}

// without are those that conflict with none of the others.
func without(behaviors, others []plan.Behavior) []plan.Behavior {
	return slices.DeleteFunc(behaviors, func(b plan.Behavior) bool { return slices.ContainsFunc(others, b.Conflicts) })
}

// cut takes a share of what can be handed out: what comes first.
func (q *queue) cut(free []plan.Behavior) []plan.Behavior {
	enough := q.total(free)
	if q.processes > 1 {
		enough /= time.Duration(share * q.processes)
	}
	size, weight := 0, time.Duration(0)
	for size < len(free) && (size == 0 || weight < enough) {
		weight += q.of(free[size])
		size++
	}
	return free[:size]
}
