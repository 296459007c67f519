package workers

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

// guess is the duration of a behavior that takes less than a second, or was never measured.
const guess = 300 * time.Millisecond

// mostlyWaits is the duration from which a behavior counts as mostly waiting for a controller or a grace period. It needs hardly any CPU,
// so spare workers run it.
const mostlyWaits = 5 * time.Second

// estimates are the durations of behaviors in earlier runs, by id.
type estimates map[string]time.Duration

func (e estimates) of(behavior plan.Behavior) time.Duration {
	if behavior.Skipped {
		return 0
	}
	if known, ok := e[behavior.ID]; ok {
		return known
	}
	return cmp.Or(behavior.Duration(), guess)
}

func (e estimates) total(behaviors []plan.Behavior) time.Duration {
	total := time.Duration(0)
	for _, behavior := range behaviors {
		total += e.of(behavior)
	}
	return total
}

// class determines when a behavior is assigned, in this order.
type class int

const (
	// alone behaviors are Serial. They run when no behavior that they disturb is left or running, and none starts meanwhile.
	alone class = iota
	// working behaviors are all others.
	working
	// waiting behaviors mostly wait.
	waiting
	// late behaviors use the kind that the run defines. They come last, when the garbage collector has discovered it.
	late
)

func (e estimates) classOf(behavior plan.Behavior) class {
	switch {
	case behavior.Skipped:
		return working
	case behavior.Serial:
		return alone
	case behavior.SharedKind:
		return late
	case e.of(behavior) >= mostlyWaits:
		return waiting
	}
	return working
}

// share determines the part of the remaining behaviors in a batch, for each process: small enough that no process has a long batch at the
// end.
const share = 2

// longest is the longest batch, because one that starts last must not keep a run from its end. shortest is the shortest one of a run that has as much for
// each process, so that the start of processes does not dominate.
const (
	longest  = 10 * time.Second
	shortest = time.Second
)

// batch is the work of one worker process: behaviors on one cluster.
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

// files are the files with the behaviors' containers; nil where one is not in a container.
func (b *batch) files() []string {
	files := sets.New[string]()
	for _, behavior := range b.behaviors {
		if len(behavior.Files) == 0 {
			return nil
		}
		files.Insert(behavior.Files...)
	}
	return sets.List(files)
}

// queue assigns batches by class and urgency, from the cluster with the most work left.
type queue struct {
	estimates
	mu        sync.Mutex
	changed   *sync.Cond
	processes int
	// left are the unassigned behaviors, by cluster, in order of class and urgency, and out the assigned ones.
	left [][]plan.Behavior
	out  [][]*batch
	// expected counts the clusters that are not filled yet, parallel the parallel behaviors, and whole is their duration.
	expected, parallel int
	whole              time.Duration
	// closed is set when nothing is assigned anymore.
	closed bool
}

// newQueue returns the queue of a number of clusters, each to be filled.
func newQueue(clusters, processes int, known map[string]time.Duration) *queue {
	q := &queue{
		estimates: known, processes: processes, left: make([][]plan.Behavior, clusters), out: make([][]*batch, clusters), expected: clusters,
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// grow makes batches smaller, for more processes.
func (q *queue) grow(processes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processes += processes
}

// fill adds the behaviors of a cluster, once for each. There may be none.
func (q *queue) fill(cluster int, behaviors []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected--
	for _, behavior := range behaviors {
		if !behavior.Serial && !behavior.Skipped {
			q.parallel++
			q.whole += q.of(behavior)
		}
	}
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

// leftOf returns the unassigned behaviors of some classes.
func (q *queue) leftOf(cluster int, classes ...class) []plan.Behavior {
	return slices.DeleteFunc(slices.Clone(q.left[cluster]), func(b plan.Behavior) bool { return !slices.Contains(classes, q.classOf(b)) })
}

// next waits for a batch. It returns false when nothing is left and nothing can be returned. A spare worker gets only behaviors that mostly
// wait.
func (q *queue) next(spare bool) (*batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if taken, ok := q.take(spare); ok {
			return taken, true
		}
		if q.idle() {
			return nil, false
		}
		q.changed.Wait()
	}
}

// done returns a batch, with the behaviors to run again.
func (q *queue) done(finished *batch, again []plan.Behavior) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out[finished.cluster] = slices.DeleteFunc(q.out[finished.cluster], func(b *batch) bool { return b == finished })
	q.add(finished.cluster, again)
}

// close drops unassigned behaviors, and those that are returned later.
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

// byWork returns the clusters, the one with the most work left first.
func (q *queue) byWork() []int {
	clusters := make([]int, len(q.left))
	for cluster := range clusters {
		clusters[cluster] = cluster
	}
	slices.SortStableFunc(clusters, func(a, b int) int { return cmp.Compare(q.total(q.left[b]), q.total(q.left[a])) })
	return clusters
}

// take returns the next batch, and false when nothing can be assigned now.
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

// nextOf returns the behaviors of a cluster's next batch; none when none can be assigned now.
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
	if due := without(serial, slices.Concat(running, others)); len(due) > 0 {
		if due[0].Stops != "" {
			return due[:1] // others run in parallel
		}
		return slices.DeleteFunc(due, disturbingOther(due[0])) // those that disturb the same
	}
	if free := without(q.leftOf(cluster, working), running); len(free) > 0 && !q.holdsUp(next, serial, free) {
		return q.cut(free)
	}
	if len(others) > 0 {
		return next
	}
	return q.cut(without(q.leftOf(cluster, late), running))
}

// holdsUp reports whether the Serial behaviors that wait for the end of the next batch take longer than the others that could be assigned. Those
// can still run when a Serial behavior does.
func (q *queue) holdsUp(next, serial, others []plan.Behavior) bool {
	return len(next) > 0 && q.urgency(next[0], serial)-q.of(next[0]) > q.total(others)/time.Duration(q.processes)
}

// disturbingOther returns whether a behavior disturbs a different set than this one, or may run in parallel with others that disturb it.
func disturbingOther(first plan.Behavior) func(plan.Behavior) bool {
	return func(b plan.Behavior) bool {
		return b.Stops != "" || !slices.EqualFunc(b.Disturbs, first.Disturbs, slices.Equal)
	}
}

// without returns the behaviors that conflict with none of the others.
func without(behaviors, others []plan.Behavior) []plan.Behavior {
	return slices.DeleteFunc(slices.Clone(behaviors), func(b plan.Behavior) bool { return slices.ContainsFunc(others, b.Conflicts) })
}

// cut takes a share of the assignable behaviors from the start, or one if there are few, so that each process has something to do. One that is longer than the longest batch is not added to others: all behaviors of a
// batch count as running until its end, so the others would hold back what they conflict with.
func (q *queue) cut(free []plan.Behavior) []plan.Behavior {
	enough := q.total(free)
	if q.processes > 1 {
		least := min(shortest, q.whole/time.Duration(q.processes))
		enough = max(least, min(enough/time.Duration(share*q.processes), longest))
	}
	if q.parallel <= q.processes {
		enough = 0
	}
	size, weight := 0, time.Duration(0)
	for size < len(free) && (size == 0 || free[size].Skipped || weight < enough && q.of(free[size]) < longest) {
		weight += q.of(free[size])
		size++
	}
	return free[:size]
}
