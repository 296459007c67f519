package graceful

import (
	"math"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// classPolling is how often a pod is created until admission, which learns of classes on a separate watch, knows its class.
const classPolling = 100 * time.Millisecond

// podPriority is the page of the documentation on priorities.
const podPriority = "concepts/scheduling-eviction/pod-priority-preemption"

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

	Specify("A preempted pod must have the condition DisruptionTarget with the reason PreemptionByScheduler and keep its grace period, and "+
		"the preemptor must not be bound before the removal of the pod.",
		Behavior("graceful.preempted", Core, KCM, SimulatedNode, Class, Source(podPriority),
			Promise("When Pods are preempted, the victims get their graceful termination period.")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			room := map[string]any{"cpu": "1", "memory": "1Gi", "pods": "1"}
			node := cluster.Create(ctx, fixtures.Node("node"), WithLabel(Domain+"/node", cluster.Namespace()),
				WithField(room, "status", "capacity"), WithField(room, "status", "allocatable"))
			lowest := cluster.Create(ctx, fixtures.PriorityClass("lowest"))
			victim := prioritized(ctx, cluster, fixtures.GhostBoundPod("victim"), lowest, OnNode(node.GetName()), WithGrace(20))

			higher := cluster.Create(ctx, fixtures.PriorityClass("higher"), WithField(int64(math.MinInt32)+1, "value"),
				WithField(string(corev1.PreemptLowerPriority), "preemptionPolicy"))
			preemptor := prioritized(ctx, cluster, fixtures.UnscheduledPod("preemptor"), higher, func(pod *Object) {
				WithField(map[string]any{Domain + "/node": cluster.Namespace()}, "spec", "nodeSelector")(pod)
				WithField([]any{map[string]any{"operator": "Exists"}}, "spec", "tolerations")(pod)
				WithField(corev1.DefaultSchedulerName, "spec", "schedulerName")(pod)
			})

			Eventually(ctx, cluster.History(victim)).Should(HaveObserved(
				Matching(victim, HaveConditionSaying(string(corev1.DisruptionTarget), corev1.PodReasonPreemptionByScheduler)), Terminating(victim)))
			Expect(cluster.Get(ctx, victim)).To(And(BeTerminating(), HaveGracePeriod(20)))
			Expect(nodes.Of(cluster.Get(ctx, preemptor))).To(BeEmpty(), "the preemptor waits for the victim")

			cluster.Delete(ctx, victim, Grace(0))
			Eventually(ctx, cluster.History(preemptor)).Should(HaveObserved(Matching(preemptor, HaveCondition(string(corev1.PodScheduled)))))
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
