package graceful

import (
	"fmt"
	"math"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/events"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// classPolling is how often a pod is created until admission, which learns of classes on a separate watch, knows its class.
const classPolling = 100 * time.Millisecond

// nodeLabel is the label of the nodes for which pods wait.
const nodeLabel = Domain + "/node"

// withRoom gives a node room for some pods, and this label.
func withRoom(pods, label string) ObjectOption {
	return func(node *Object) {
		room := map[string]any{"cpu": "1", "memory": "1Gi", "pods": pods}
		WithField(room, "status", "capacity")(node)
		WithField(room, "status", "allocatable")(node)
		WithLabel(nodeLabel, label)(node)
	}
}

// waitingFor makes a pod one that is to be scheduled on a node with this label.
func waitingFor(label string) ObjectOption {
	return func(pod *Object) {
		WithField(map[string]any{nodeLabel: label}, "spec", "nodeSelector")(pod)
		WithField([]any{map[string]any{"operator": "Exists"}}, "spec", "tolerations")(pod)
		WithField(corev1.DefaultSchedulerName, "spec", "schedulerName")(pod)
	}
}

// podPriority is the page of the documentation on priorities.
const podPriority = "concepts/scheduling-eviction/pod-priority-preemption"

// burstable removes a limit of a pod, and so changes its QoS class.
func burstable(pod *Object) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	unstructured.RemoveNestedField(containers[0].(map[string]any), "resources", "limits", "memory")
	WithField(containers, "spec", "containers")(pod)
}

// prioritized creates a pod of a PriorityClass that was created just now.
func prioritized(ctx SpecContext, cluster *Cluster, manifest, class *Object, options ...ObjectOption) *Object {
	GinkgoHelper()
	var response Response
	Eventually(ctx, func() Response {
		response = cluster.TryCreate(ctx, manifest, append(options, WithField(class.GetName(), "spec", "priorityClassName"))...)
		return response
	}).WithPolling(classPolling).Should(HaveStatusCode(http.StatusCreated), "admission knows the PriorityClass")
	return response.Object
}

var _ = Describe("Preemption", func() {
	cluster := UseCluster()

	// preempts creates a pod, and another one that is to be scheduled on its node, which has room for one. Their QoS classes differ.
	preempts := func(ctx SpecContext) (victim, preemptor *Object) {
		GinkgoHelper()
		workloads.MustBeScheduled(ctx, cluster)
		node := cluster.Create(ctx, fixtures.Node("node"), withRoom("1", cluster.Namespace()))
		lowest := cluster.Create(ctx, fixtures.PriorityClass("lowest"))
		victim = prioritized(ctx, cluster, fixtures.GhostBoundPod("victim"), lowest, OnNode(node.GetName()), WithGrace(20), burstable)

		higher := cluster.Create(ctx, fixtures.PriorityClass("higher"), WithField(int64(math.MinInt32)+1, "value"),
			WithField(string(corev1.PreemptLowerPriority), "preemptionPolicy"))
		return victim, prioritized(ctx, cluster, fixtures.UnscheduledPod("preemptor"), higher, waitingFor(cluster.Namespace()))
	}

	Specify("A preempted pod must have the condition DisruptionTarget with the reason PreemptionByScheduler and keep its grace period, and "+
		"the preemptor must not be bound before the removal of the pod.",
		Behavior("graceful.preempted", Core, KCM, SimulatedNode, Class, Source(podPriority),
			Promise("When Pods are preempted, the victims get their graceful termination period.")), func(ctx SpecContext) {
			victim, preemptor := preempts(ctx)

			Eventually(ctx, cluster.History(victim)).Should(HaveObserved(
				Matching(victim, HaveConditionSaying(string(corev1.DisruptionTarget), corev1.PodReasonPreemptionByScheduler)), Terminating(victim)))
			Expect(cluster.Get(ctx, victim)).To(And(BeTerminating(), HaveGracePeriod(20)))
			Expect(nodes.Of(cluster.Get(ctx, preemptor))).To(BeEmpty(), "the preemptor waits for the victim")

			cluster.Delete(ctx, victim, Grace(0))
			Eventually(ctx, cluster.History(preemptor)).Should(HaveObserved(Matching(preemptor, HaveCondition(string(corev1.PodScheduled)))))
		})

	Specify("The condition DisruptionTarget of a preempted pod and the message of its Event Preempted do not name the preemptor, and the "+
		"message does not name the scheduler.",
		Behavior("graceful.preemption-hides-the-preemptor", Observed, KCM, SimulatedNode, Class, Since("1.27"),
			Source("pkg/scheduler/framework/preemption/executor.go")), func(ctx SpecContext) {
			victim, preemptor := preempts(ctx)

			messages := events.Await(ctx, cluster, victim, "Preempted")

			hidden := ContainSubstring(preemptor.GetName())
			Expect(messages).To(HaveEach(Not(Or(hidden, ContainSubstring(corev1.DefaultSchedulerName)))))
			conditions, _, _ := unstructured.NestedSlice(cluster.Get(ctx, victim).Object, "status", "conditions")
			Expect(fmt.Sprint(conditions)).NotTo(hidden)
		})
})

var _ = Describe("Removals that make room", func() {
	cluster := UseCluster()

	// node creates a node with room for some pods, for those that wait for this label.
	node := func(ctx SpecContext, name, pods, label string, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.Node(name), append(options, withRoom(pods, label))...)
	}
	// bound creates a pod on a node.
	bound := func(ctx SpecContext, name string, node *Object, options ...ObjectOption) *Object {
		GinkgoHelper()
		return cluster.Create(ctx, fixtures.GhostBoundPod(name), append(options, OnNode(node.GetName()))...)
	}
	// waits creates a pod that waits for room on a node with a label.
	waits := func(ctx SpecContext, name, label string, options ...ObjectOption) *Object {
		GinkgoHelper()
		pod := cluster.Create(ctx, fixtures.UnscheduledPod(name), append(options, waitingFor(label))...)
		Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, HaveConditionFalse(string(corev1.PodScheduled)))))
		return pod
	}
	const like = Domain + "/like"
	alike := func(value string) map[string]any { return map[string]any{"matchLabels": map[string]any{like: value}} }
	// alone makes a pod keep those that are alike off its node.
	alone := WithField([]any{map[string]any{"labelSelector": alike("loner"), "topologyKey": nodeLabel}},
		"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	// spread makes a pod wait until all zones have as many pods that are alike, also the zones of nodes for which it does not wait.
	spread := func(zone string) ObjectOption {
		return WithField([]any{map[string]any{
			"maxSkew": int64(1), "topologyKey": zone, "whenUnsatisfiable": string(corev1.DoNotSchedule), "labelSelector": alike("spread"),
			"nodeAffinityPolicy": string(corev1.NodeInclusionPolicyIgnore),
		}}, "spec", "topologySpreadConstraints")
	}

	Specify("A waiting pod is scheduled after the removal of a pod with anti-affinity to it, of a pod nominated for its node, or of a Node "+
		"in an emptier domain.",
		Behavior("graceful.removal-makes-room", Observed, KCM, SimulatedNode, Since("1.36"), Source("pkg/scheduler/eventhandlers.go")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			shunned, crowded, zoned := cluster.FreeName("shunned"), cluster.FreeName("crowded"), cluster.FreeName("zoned")
			loner := bound(ctx, "loner", node(ctx, "shunned", "9", shunned), alone)
			crowdedNode := node(ctx, "crowded", "1", crowded)
			nominated := waits(ctx, "nominated", "none")
			cluster.SetStatus(ctx, nominated, map[string]any{"nominatedNodeName": crowdedNode.GetName()})
			zone := Domain + "/" + cluster.FreeName("zone")
			bound(ctx, "first", node(ctx, "full", "9", zoned, WithLabel(zone, "full")), WithLabel(like, "spread"))
			empty, other := node(ctx, "empty", "9", "others", WithLabel(zone, "empty")), node(ctx, "other", "9", "others", WithLabel(zone, "full"))
			for _, node := range []*Object{empty, other} {
				bound(ctx, node.GetName(), node)
			}
			afterLoner, afterNominated := waits(ctx, "shunned", shunned, WithLabel(like, "loner")), waits(ctx, "crowded", crowded)
			afterNode := waits(ctx, "zoned", zoned, WithLabel(like, "spread"), spread(zone))
			scheduled := func(pod *Object) {
				GinkgoHelper()
				Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, HaveCondition(string(corev1.PodScheduled)))))
			}

			cluster.Delete(ctx, nominated) // first, because the removal of a pod with a node lets it be tried, too
			scheduled(afterNominated)
			cluster.Delete(ctx, loner, Grace(0))
			scheduled(afterLoner)
			cluster.Delete(ctx, empty)
			cluster.Delete(ctx, other) // because the scheduler may try pods before it knows that the first one is gone
			scheduled(afterNode)
			failed := HaveJSONPath(`{.status.conditions[?(@.type=="PodScheduled")].reason}`, corev1.PodReasonSchedulerError)
			Expect(cluster.History(afterNode)).NotTo(HaveObserved(Matching(afterNode, failed)))
		})
})

var _ = Describe("Deletion of PriorityClasses", func() {
	cluster := UseCluster()

	Specify("The pods of a deleted PriorityClass must remain unchanged and writable, and creating more pods of this class must be refused.",
		Behavior("graceful.priority-class-deleted", Core, Class, Source(podPriority),
			Promise("existing Pods that use the name of the deleted PriorityClass remain unchanged, but you cannot create more Pods that use the "+
				"name")), func(ctx SpecContext) {
			class := cluster.Create(ctx, fixtures.PriorityClass("class"))
			pod := prioritized(ctx, cluster, fixtures.UnscheduledPod("pod"), class)
			ofClass := WithField(class.GetName(), "spec", "priorityClassName")

			cluster.Delete(ctx, class)

			Eventually(ctx, func() Response { return cluster.DryRun().TryCreate(ctx, fixtures.UnscheduledPod("more"), ofClass) }).
				WithPolling(classPolling).Should(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
			Expect(cluster.Update(ctx, pod, WithLabel("written", "true"))).To(HaveJSONPath("{.spec.priority}", "-2147483648"))
		})
})
