package workers

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
)

func behaviors(ids ...string) []plan.Behavior {
	var behaviors []plan.Behavior
	for _, id := range ids {
		behaviors = append(behaviors, plan.Behavior{Behavior: v1alpha1.Behavior{ID: id}})
	}
	return behaviors
}

func requiring(id string, features ...v1alpha1.Feature) []plan.Behavior {
	made := behaviors(id)
	made[0].Features = features
	return made
}

func serial(ids ...string) []plan.Behavior {
	serial := behaviors(ids...)
	for i := range serial {
		serial[i].Serial = true
	}
	return serial
}

// lasting are the durations of behaviors of which each is a batch.
func lasting(ids ...string) map[string]time.Duration {
	durations := map[string]time.Duration{}
	for _, id := range ids {
		durations[id] = shortest
	}
	return durations
}

func isSerial(b *batch) bool { return b.behaviors[0].Serial }

// filled returns a queue of clusters with the same behaviors on each.
func filled(clusters, processes int, chosen []plan.Behavior, durations map[string]time.Duration) *queue {
	q := newQueue(clusters, processes, durations)
	for cluster := range clusters {
		q.fill(cluster, chosen)
	}
	return q
}

// taken returns the next batch; it fails the test when there is none.
func taken(t *testing.T, q *queue) *batch {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, ok := q.take(false)
	if !ok {
		t.Fatal("nothing is handed out")
	}
	return taken
}

// holdsBack reports whether nothing can be assigned now.
func holdsBack(q *queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.take(false)
	return !ok
}

func TestQueue_OneProcess(t *testing.T) {
	g := NewWithT(t)
	durations := map[string]time.Duration{"slow": 4 * time.Second, "quick": time.Millisecond}
	q := filled(1, 1, behaviors("quick", "unknown", "slow", "unknown-too"), durations)

	batch := taken(t, q)

	g.Expect(batch.ids()).To(Equal([]string{"slow", "unknown", "unknown-too", "quick"}))
	q.done(batch, nil)
	_, more := q.next(false)
	g.Expect(more).To(BeFalse())
}

func TestQueue_SeveralProcesses(t *testing.T) {
	g := NewWithT(t)
	durations, ids := map[string]time.Duration{"slow": 4 * time.Second}, []string{"slow"}
	for _, letter := range "abcdefghijklmnopqrstuvwx" {
		ids = append(ids, string(letter))
	}
	q := filled(1, 2, behaviors(ids...), durations)

	var sizes []int
	var handed []string
	for !holdsBackAfterAll(q) {
		batch := taken(t, q)
		sizes = append(sizes, len(batch.ids()))
		handed = append(handed, batch.ids()...)
	}

	g.Expect(handed).To(Equal(ids), "each once, the longest first")
	g.Expect(sizes[0]).To(Equal(1), "what takes longest takes a process alone")
	g.Expect(sizes[1]).To(Equal(6), "a fourth of what is left")
	g.Expect(sizes[1:]).To(Satisfy(func(sizes []int) bool {
		return slices.IsSortedFunc(sizes, func(a, b int) int { return b - a })
	}), "the end is handed out in small pieces")
	g.Expect(sizes[len(sizes)-2]).To(Equal(4), "but not in pieces that take less than the start of a process; the last is the rest")
}

func TestQueue_FewBehaviors(t *testing.T) {
	q := filled(1, 3, slices.Concat(behaviors("a", "b", "c"), serial("alone", "alone-too")), map[string]time.Duration{"a": 2 * time.Second})
	NewWithT(t).Expect([][]string{taken(t, q).ids(), taken(t, q).ids(), taken(t, q).ids()}).To(Equal([][]string{{"a"}, {"b"}, {"c"}}), "each process has something to do")
}

func TestQueue_PodBatches(t *testing.T) {
	var chosen []plan.Behavior
	durations := map[string]time.Duration{}
	for i := range 40 {
		chosen = append(chosen, requiring(fmt.Sprint(i), v1alpha1.Node)...)
		durations[fmt.Sprint(i)] = 8 * time.Second
	}

	batch := taken(t, filled(1, 2, chosen, durations))

	NewWithT(t).Expect(batch.behaviors).To(HaveLen(2), "a quarter of them would take 80 s")
}

func holdsBackAfterAll(q *queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.left[0]) == 0
}

func TestQueue_SerialLast(t *testing.T) {
	g := NewWithT(t)
	q := filled(1, 2, append(serial("alone", "alone-too"), behaviors("a", "b")...), lasting("a", "b"))

	first, second := taken(t, q), taken(t, q)
	g.Expect(append(first.ids(), second.ids()...)).To(ConsistOf("a", "b"))
	g.Expect(holdsBack(q)).To(BeTrue(), "others are still running")
	q.done(first, nil)
	g.Expect(holdsBack(q)).To(BeTrue(), "one other is still running")
	q.done(second, nil)

	last := taken(t, q)
	g.Expect(last.ids()).To(Equal([]string{"alone", "alone-too"}))
	g.Expect(isSerial(last)).To(BeTrue())
	g.Expect(holdsBack(q)).To(BeTrue())
}

func TestQueue_AwaitsCollector(t *testing.T) {
	g := NewWithT(t)
	custom := requiring("custom", v1alpha1.GC, v1alpha1.CRD)
	custom[0].SharedKind = true
	known := map[string]time.Duration{"a": shortest, "definition": 3 * time.Second}
	q := filled(1, 2, slices.Concat(custom, serial("alone"), behaviors("a"), requiring("definition", v1alpha1.CRD)), known)

	for _, want := range [][]string{{"definition"}, {"a"}, {"alone"}} {
		batch := taken(t, q)
		g.Expect(batch.ids()).To(Equal(want))
		q.done(batch, nil)
	}
	late := taken(t, q)
	g.Expect(late.ids()).To(Equal([]string{"custom"}))
	g.Expect(isSerial(late)).To(BeFalse())
	q.add(0, serial("alone"))
	g.Expect(holdsBack(q)).To(BeTrue(), "what runs alone does so, also when it comes back late")
	q.done(late, custom)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"alone"}))
}

func TestQueue_LongBehavior(t *testing.T) {
	g := NewWithT(t)
	alone := serial("alone")
	alone[0].Disturbs = [][]v1alpha1.Feature{{v1alpha1.Node}}
	others := behaviors("a", "b", "c", "d")
	known := map[string]time.Duration{"alone": time.Minute, "node": mostlyWaits, "kind": 2 * longest}
	for _, other := range others {
		known[other.ID] = mostlyWaits
	}
	q := filled(1, 1, slices.Concat(requiring("node", v1alpha1.Node), requiring("kind", v1alpha1.GC, v1alpha1.CRD), others, alone), known)

	g.Expect(takenSpare(q)).To(Equal([]string{"node"}), "what runs alone may start before the long one ends")
	g.Expect(takenSpare(q)).To(Equal([]string{"kind", "a", "b", "c", "d"}))
}

func TestEstimates(t *testing.T) {
	g := NewWithT(t)
	durations := estimates{"measured": time.Second, "graceful.node.readiness-probes": time.Minute}
	of := func(behaviors []plan.Behavior) time.Duration { return durations.of(behaviors[0]) }

	g.Expect(of(behaviors("measured"))).To(Equal(time.Second))
	g.Expect(of(behaviors("unknown"))).To(Equal(guess))
	g.Expect(of(behaviors("graceful.node.in-parallel"))).To(BeNumerically(">", mostlyWaits), "what plan knows of it")
	g.Expect(of(behaviors("graceful.node.readiness-probes"))).To(Equal(time.Minute), "what was measured counts")
}

func TestQueue_Serial(t *testing.T) {
	g := NewWithT(t)
	q := filled(1, 2, append(serial("alone"), behaviors("a")...), nil)
	parallel := taken(t, q)
	q.done(parallel, nil)
	alone := taken(t, q)

	q.add(0, behaviors("late"))
	g.Expect(holdsBack(q)).To(BeTrue(), "a serial behavior is running")
	q.done(alone, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"late"}))
}

func TestQueue_Disturbs(t *testing.T) {
	g := NewWithT(t)
	away := serial("away", "away-too")
	for i := range away {
		away[i].Features, away[i].Disturbs = []v1alpha1.Feature{v1alpha1.Node}, [][]v1alpha1.Feature{{v1alpha1.Node}}
	}
	durations := map[string]time.Duration{"on-node": time.Minute, "a": time.Minute, "b": time.Minute}
	q := filled(1, 2, slices.Concat(away, serial("alone"), behaviors("a", "b"), requiring("on-node", v1alpha1.Node)), durations)

	onNode := taken(t, q)
	g.Expect(onNode.ids()).To(Equal([]string{"on-node"}), "what they wait for is urgent")
	a := taken(t, q)
	g.Expect(a.ids()).To(Equal([]string{"a"}))
	q.done(onNode, nil)
	disturbing := taken(t, q)
	g.Expect(disturbing.ids()).To(Equal([]string{"away", "away-too"}), "the one that may run beside nothing is not due")
	q.add(0, requiring("on-node-again", v1alpha1.Node))
	g.Expect(taken(t, q).ids()).To(Equal([]string{"b"}))
	g.Expect(holdsBack(q)).To(BeTrue(), "nothing that they disturb runs beside them")
	q.done(disturbing, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"on-node-again"}))
	g.Expect(holdsBack(q)).To(BeTrue(), "others are still running")
}

func TestQueue_HoldsUp(t *testing.T) {
	g := NewWithT(t)
	away := serial("away")
	away[0].Features, away[0].Disturbs = []v1alpha1.Feature{v1alpha1.Node}, [][]v1alpha1.Feature{{v1alpha1.Node}}
	known := map[string]time.Duration{"away": time.Minute, "on-node": 8 * time.Second, "a": 4 * time.Second, "b": 4 * time.Second}
	chosen := slices.Concat(requiring("on-node", v1alpha1.Node), behaviors("a", "b"), away)

	q := filled(1, 1, chosen, known)
	onNode := taken(t, q)
	g.Expect(onNode.ids()).To(Equal([]string{"on-node"}), "the others can run while one is alone on the node")
	q.done(onNode, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"away"}))
	g.Expect(taken(t, q).ids()).To(Equal([]string{"a", "b"}))

	known["away"] = time.Second
	g.Expect(taken(t, filled(1, 1, chosen, known)).ids()).To(Equal([]string{"a", "b"}), "one that is alone for a short time waits")
}

func TestQueue_LateBeforeSerial(t *testing.T) {
	g := NewWithT(t)
	custom := requiring("custom", v1alpha1.GC, v1alpha1.CRD)
	custom[0].SharedKind = true
	q := filled(1, 2, slices.Concat(custom, serial("alone"), behaviors("a")), lasting("a"))

	a := taken(t, q)
	late := taken(t, q)
	g.Expect(late.ids()).To(Equal([]string{"custom"}), "while another is running, so that what runs alone is not due")
	q.done(a, nil)
	g.Expect(holdsBack(q)).To(BeTrue(), "one is still running")
	q.done(late, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"alone"}))
}

func TestQueue_Stops(t *testing.T) {
	g := NewWithT(t)
	away := serial("kubelet", "kubelet-too", "runtime", "alone-on-node", "alone-on-node-too")
	for i, component := range []string{"kubelet", "kubelet", "containerd", "", ""} {
		away[i].Features, away[i].Disturbs, away[i].Stops = []v1alpha1.Feature{v1alpha1.Node}, [][]v1alpha1.Feature{{v1alpha1.Node}}, component
	}
	durations := map[string]time.Duration{"kubelet": 4 * time.Second, "kubelet-too": time.Second, "runtime": 3 * time.Second, "on-node": time.Minute,
		"alone-on-node": 8 * time.Second, "alone-on-node-too": 8 * time.Second}
	q := filled(1, 4, slices.Concat(requiring("on-node", v1alpha1.Node), away), durations)
	onNode := taken(t, q)
	g.Expect(onNode.ids()).To(Equal([]string{"on-node"}))
	g.Expect(holdsBack(q)).To(BeTrue(), "a behavior that they disturb is running")
	q.done(onNode, nil)

	both := taken(t, q)
	g.Expect(both.ids()).To(Equal([]string{"alone-on-node", "alone-on-node-too"}), "one after the other, as they disturb each other")
	q.done(both, nil)
	first, second := taken(t, q), taken(t, q)
	g.Expect([][]string{first.ids(), second.ids()}).To(Equal([][]string{{"kubelet"}, {"kubelet-too"}}), "in parallel, as they stop the same component")
	g.Expect(holdsBack(q)).To(BeTrue(), "another component must run")
	q.done(first, nil)
	g.Expect(holdsBack(q)).To(BeTrue(), "the second one still needs it")
	q.done(second, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"runtime"}))
}

func TestQueue_SpareNode(t *testing.T) {
	g := NewWithT(t)
	away := slices.Concat(requiring("away", v1alpha1.Node), requiring("away-too", v1alpha1.Node))
	for i := range away {
		away[i].Serial, away[i].Disturbs = true, [][]v1alpha1.Feature{{v1alpha1.Node}}
	}
	chosen := Cluster{SpareNode: true, Behaviors: slices.Concat(requiring("on-node", v1alpha1.Node), away)}.assigned()
	q := filled(1, 2, chosen, nil)

	disturbing := taken(t, q)
	g.Expect(disturbing.ids()).To(Equal([]string{"away", "away-too"}), "they wait for no other")
	onNode := taken(t, q)
	g.Expect(onNode.ids()).To(Equal([]string{"on-node"}))
	q.done(onNode, nil)
	q.add(0, Cluster{SpareNode: true, Behaviors: away}.assigned())
	g.Expect(holdsBack(q)).To(BeTrue(), "they disturb each other")
	q.done(disturbing, nil)
	g.Expect(taken(t, q).ids()).To(Equal([]string{"away", "away-too"}))
}

// takenSpare returns the behaviors for a spare worker; empty when there are none now.
func takenSpare(q *queue) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken, ok := q.take(true)
	if !ok {
		return nil
	}
	return taken.ids()
}

func TestQueue_ExtraWorkers(t *testing.T) {
	g := NewWithT(t)
	durations := map[string]time.Duration{
		"waits": 6 * time.Second, "waits-longer": 7 * time.Second, "works": 4 * time.Second, "alone": time.Minute,
	}
	alone := serial("alone")
	q := filled(1, 2, slices.Concat(behaviors("works", "waits", "waits-longer"), alone), durations)

	g.Expect(takenSpare(q)).To(Equal([]string{"waits-longer"}), "the longest first")
	works := taken(t, q)
	g.Expect(works.ids()).To(Equal([]string{"works"}))
	g.Expect(taken(t, q).ids()).To(Equal([]string{"waits"}), "others take it too when nothing else is left")
	g.Expect(takenSpare(q)).To(BeNil(), "what runs alone is not theirs")
	g.Expect(holdsBack(q)).To(BeTrue(), "it comes when all others are done")
}

func TestPool_ExtraWorkers(t *testing.T) {
	g := NewWithT(t)
	durations := map[string]time.Duration{"waits": 6 * time.Second, "waits-too": time.Minute}
	pool := Pool{Processes: 2, Durations: durations}
	g.Expect(pool.Workers(behaviors("works"))).To(Equal(2))
	g.Expect(pool.Workers(behaviors("works", "waits"))).To(Equal(3))
	g.Expect(pool.Workers(behaviors("works", "waits", "waits-too", "waits"))).To(Equal(4), "as many again at most")
	pool.Columns = 1
	g.Expect(pool.Workers(behaviors("waits"))).To(Equal(1), "a second one had nothing to run")
	g.Expect(pool.Workers(nil)).To(Equal(1), "as in an exploration")
	pool.Columns = 2
	g.Expect(pool.Workers(behaviors("waits"))).To(Equal(2), "it runs twice")
}

func TestBatch_Files(t *testing.T) {
	g := NewWithT(t)
	b := &batch{behaviors: behaviors("nested", "flat")}
	g.Expect(b.files()).To(BeEmpty(), "those in no container are always built, and all with them")
	b.behaviors[0].Files, b.behaviors[1].Files = []string{"b.go", "a.go"}, []string{"b.go"}
	g.Expect(b.files()).To(Equal([]string{"a.go", "b.go"}))
	b.behaviors[1].Files = nil
	g.Expect(b.files()).To(BeEmpty())
}

func TestQueue_Skipped(t *testing.T) {
	g := NewWithT(t)
	unsupported := slices.Concat(behaviors("long"), serial("alone"))
	for i := range unsupported {
		unsupported[i].Skipped = true
	}
	known := map[string]time.Duration{"long": time.Minute, "alone": time.Minute, "quick": time.Millisecond}
	q := filled(1, 2, slices.Concat(unsupported, behaviors("quick"), serial("serial")), known)

	g.Expect(takenSpare(q)).To(BeNil(), "nothing waits")
	g.Expect(taken(t, q).ids()).To(Equal([]string{"quick", "long", "alone"}), "they take no process")
	g.Expect(holdsBack(q)).To(BeTrue(), "the other Serial one waits")
	g.Expect(Pool{}.Estimate(unsupported, time.Second)).To(BeZero())
}

func TestPool_FarCluster(t *testing.T) {
	g := NewWithT(t)
	pool, usual := Pool{}, DefaultProcesses()
	g.Expect(pool.Extra(nil, 0)).To(Equal(0), "nothing is known, or the server queues requests")
	g.Expect(pool.Extra(nil, 2*time.Millisecond)).To(Equal(0))
	g.Expect(pool.Extra(nil, 25*time.Millisecond)).To(Equal(0), "a busy machine is as slow")
	g.Expect(pool.Extra(nil, 75*time.Millisecond)).To(Equal(usual * 3 / 2))
	g.Expect(pool.Extra(nil, time.Second)).To(Equal(2*usual), "at most twice as many")
	pool.Columns = 1
	g.Expect(pool.Extra(make([]plan.Behavior, usual+1), time.Second)).To(Equal(1), "one more has something to run")
	pool.Processes = 8
	g.Expect(pool.Extra(nil, time.Second)).To(Equal(0), "the user says how many there are")
}

func TestPool_Join(t *testing.T) {
	g := NewWithT(t)
	pool := &poolRun{Pool: Pool{Processes: 2}, queue: newQueue(2, 2, nil)}
	g.Expect(pool.join(2)).To(Equal([]int{3, 4}))
	g.Expect(pool.join(3)).To(Equal([]int{5}), "those that joined for another cluster are there")
	g.Expect(pool.join(1)).To(BeEmpty())
	g.Expect(pool.queue.processes).To(Equal(5), "batches become smaller")
}

func TestPool_Estimate(t *testing.T) {
	g := NewWithT(t)
	durations := map[string]time.Duration{"a": 2 * time.Second, "b": 4 * time.Second, "waits": time.Minute, "alone": 3 * time.Second}
	pool := Pool{Processes: 2, Durations: durations}
	g.Expect(pool.Estimate(nil, 0)).To(BeZero())
	g.Expect(pool.Estimate(behaviors("a", "b"), 0)).To(Equal(4 * time.Second))
	g.Expect(pool.Estimate(behaviors("a", "a", "b"), 0)).To(Equal(4 * time.Second))
	g.Expect(pool.Estimate(behaviors("a", "b", "b", "b"), 0)).To(Equal(7 * time.Second))
	g.Expect(pool.Estimate(append(behaviors("a", "waits"), serial("alone")...), 0)).To(Equal(63 * time.Second))
	g.Expect(pool.Estimate(behaviors("a", "b"), time.Second)).To(Equal(17*time.Second), "and thirteen requests each")
}

func TestQueue_Untested(t *testing.T) {
	g := NewWithT(t)
	q := filled(1, 1, append(serial("alone"), behaviors("a", "b", "c")...), nil)
	first := taken(t, q)

	q.done(first, behaviors("c", "b"))

	again := taken(t, q)
	g.Expect(again.ids()).To(ConsistOf("b", "c"))
	g.Expect(isSerial(again)).To(BeFalse(), "what may run beside others comes before what runs alone")
	q.done(again, nil)
	alone := taken(t, q)
	q.done(alone, serial("alone"))
	g.Expect(taken(t, q)).To(Equal(alone))
}

func TestQueue_SeveralClusters(t *testing.T) {
	g := NewWithT(t)
	q := filled(2, 2, append(behaviors("a", "b", "c", "d"), serial("alone")...), lasting("a", "b", "c", "d"))

	handed := map[int][]string{}
	var batches []*batch
	for range 8 {
		batch := taken(t, q)
		batches = append(batches, batch)
		handed[batch.cluster] = append(handed[batch.cluster], batch.ids()...)
		difference := len(handed[0]) - len(handed[1])
		g.Expect(difference).To(And(BeNumerically(">=", -1), BeNumerically("<=", 1)), "no cluster waits for another")
	}
	g.Expect(handed[0]).To(ConsistOf("a", "b", "c", "d"))
	g.Expect(handed[1]).To(ConsistOf("a", "b", "c", "d"))

	g.Expect(holdsBack(q)).To(BeTrue())
	for _, batch := range batches {
		if batch.cluster == 1 {
			q.done(batch, nil)
		}
	}
	alone := taken(t, q)
	g.Expect(alone.cluster).To(Equal(1), "what runs alone does so on its own cluster, whatever goes on elsewhere")
	g.Expect(isSerial(alone)).To(BeTrue())
}

// workers take batches until there are none, and call work for each.
func workers(q *queue, n int, work func(*batch) []plan.Behavior) <-chan struct{} {
	var working sync.WaitGroup
	for range n {
		working.Go(func() {
			for {
				batch, more := q.next(false)
				if !more {
					return
				}
				q.done(batch, work(batch))
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		working.Wait()
		close(ended)
	}()
	return ended
}

func TestQueue_ManyWorkers(t *testing.T) {
	g := NewWithT(t)
	var chosen []plan.Behavior
	for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
		chosen = append(append(chosen, behaviors(string(letter))...), serial("alone-"+string(letter))...)
	}
	q := filled(3, 4, chosen, nil)
	var mu sync.Mutex
	tested, alone, running := map[int]map[string]int{0: {}, 1: {}, 2: {}}, map[int]int{}, map[int]int{}

	ended := workers(q, 4, func(batch *batch) []plan.Behavior {
		mu.Lock()
		running[batch.cluster]++
		if isSerial(batch) {
			alone[batch.cluster]++
			g.Expect(running[batch.cluster]).To(Equal(1), "serial behaviors run alone")
		}
		g.Expect(alone[batch.cluster] > 0 && running[batch.cluster] > 1).To(BeFalse(), "nothing runs beside them")
		mu.Unlock()

		mu.Lock()
		defer mu.Unlock()
		running[batch.cluster]--
		if isSerial(batch) {
			alone[batch.cluster]--
		}
		var again []plan.Behavior
		for i, id := range batch.ids() {
			if tested[batch.cluster][id]++; i == 0 && tested[batch.cluster][id] == 1 && !isSerial(batch) {
				again = append(again, behaviors(id)...) // as if the first of each batch had been lost
			}
		}
		return again
	})

	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeClosed())
	for cluster, counts := range tested {
		g.Expect(counts).To(HaveLen(len(chosen)), "cluster %d", cluster)
		for id, count := range counts {
			g.Expect(count).To(BeNumerically("<=", 2), "%s on cluster %d", id, cluster)
		}
	}
}

func TestQueue_CloseWithManyWorkers(t *testing.T) {
	g := NewWithT(t)
	q := filled(2, 3, append(behaviors("a", "b", "c", "d", "e"), serial("alone")...), nil)
	begun, proceed := make(chan *batch, 10), make(chan struct{})
	ended := workers(q, 3, func(batch *batch) []plan.Behavior {
		begun <- batch
		<-proceed
		return behaviors(batch.ids()...) // interrupted before it tested anything
	})
	for range 3 {
		g.Eventually(begun).WithTimeout(10 * time.Second).Should(Receive())
	}

	q.close()
	close(proceed)

	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeClosed())
	g.Expect(begun).To(BeEmpty(), "nothing is handed out after the end")
}

func TestQueue_CloseWakesWorkers(t *testing.T) {
	g := NewWithT(t)
	q := filled(1, 2, append(behaviors("a"), serial("alone")...), nil)
	begun, proceed := make(chan struct{}, 10), make(chan struct{})
	ended := workers(q, 2, func(*batch) []plan.Behavior {
		begun <- struct{}{}
		<-proceed
		return nil
	})
	g.Eventually(begun).WithTimeout(10 * time.Second).Should(Receive())

	q.close()
	close(proceed)

	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeClosed())
	g.Expect(begun).To(BeEmpty())
}

func TestPool_ClusterOrder(t *testing.T) {
	g := NewWithT(t)
	q := newQueue(3, 1, nil)
	tested := make(chan int, 10)
	ended := workers(q, 2, func(batch *batch) []plan.Behavior {
		tested <- batch.cluster
		return nil
	})

	q.fill(1, behaviors("a"))
	g.Eventually(tested).WithTimeout(10 * time.Second).Should(Receive(Equal(1)))
	q.fill(0, nil)
	g.Expect(ended).NotTo(BeClosed(), "one is still being set up")
	q.fill(2, behaviors("a"))
	g.Eventually(tested).WithTimeout(10 * time.Second).Should(Receive(Equal(2)))
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeClosed())
}
