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
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// classPolling is how often a pod is created until admission, which learns of classes on a separate watch, knows its class.
const classPolling = 100 * time.Millisecond

// podPriority is the page of the documentation on priorities.
const podPriority = "concepts/scheduling-eviction/pod-priority-preemption"

// burstable raises a limit of a pod, and so changes its QoS class.
var burstable = inFirstContainer(func(container map[string]any) {
	container["resources"].(map[string]any)["limits"].(map[string]any)["memory"] = "128Mi"
})

// requestingCPU makes a pod request this much CPU, which is also its limit.
func requestingCPU(cpu string) ObjectOption {
	return inFirstContainer(func(container map[string]any) {
		container["resources"].(map[string]any)["requests"].(map[string]any)["cpu"] = cpu
		container["resources"].(map[string]any)["limits"].(map[string]any)["cpu"] = cpu
	})
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

	Specify("The scheduler deletes a victim only once, even if another pod is removed while the delete is under review.",
		Behavior("graceful.preemption-deletes-once", Observed, KCM, SimulatedNode, Class, Hook, Since("1.35"), Source("kubernetes#134249")),
		func(ctx SpecContext) {
			label := cluster.FreeName("other")
			node := cluster.Create(ctx, fixtures.Node("other"), withRoom("1", label))
			removed := cluster.Create(ctx, fixtures.GhostBoundPod("removed"), OnNode(node.GetName()))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Hold(cluster.Prepare(ctx, fixtures.GhostBoundPod("victim")))
			victim, _ := preempts(ctx)
			webhook.AwaitReview(ctx, victim)
			later := prioritized(ctx, cluster, fixtures.UnscheduledPod("later"), cluster.Create(ctx, fixtures.PriorityClass("later")), waitingFor(label))
			Eventually(ctx, cluster.History(later)).Should(HaveObserved(Matching(later, HaveConditionFalse(string(corev1.PodScheduled)))))

			cluster.Delete(ctx, removed, Grace(0)) // lets both waiting pods be tried again

			Eventually(ctx, cluster.History(later)).Should(HaveObserved(Matching(later, HaveCondition(string(corev1.PodScheduled)))))
			cluster.Settle(ctx)
			Expect(webhook.Reviews(victim)).To(HaveLen(1))
			webhook.Allow(victim)
			Eventually(ctx, cluster.History(victim)).Should(HaveObserved(Terminating(victim)))
		})

	Specify("Between two nodes where a preemption violates equally many PodDisruptionBudgets, the scheduler takes the node whose most important "+
		"victim has the lower priority.",
		Behavior("graceful.preemption-spares-priority", Observed, KCM, SimulatedNode, Class, Since("1.32"),
			Source("pkg/scheduler/framework/preemption/preemption.go")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			class := func(name string, above int64) *Object {
				return cluster.Create(ctx, fixtures.PriorityClass(name), WithField(math.MinInt32+above, "value"),
					WithField(string(corev1.PreemptLowerPriority), "preemptionPolicy"))
			}
			low, middle, high, highest := class("low", 0), class("middle", 1), class("high", 2), class("highest", 3)
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, "true"))
			// Two small pods leave no room on such a node. The scheduler binds the pods, so that it knows of both nodes.
			node := func(name string) *Object {
				return cluster.Create(ctx, fixtures.Node(name), withRoom("9", cluster.Namespace()), WithField("100m", "status", "allocatable", "cpu"))
			}
			bound := func(name string, class, node *Object, options ...ObjectOption) *Object {
				GinkgoHelper()
				pod := prioritized(ctx, cluster, fixtures.UnscheduledPod(name), class, append(options, waitingFor(cluster.Namespace()))...)
				Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, HaveCondition(string(corev1.PodScheduled)))))
				pod = cluster.Get(ctx, pod)
				Expect(nodes.Of(pod)).To(Equal(node.GetName()))
				return pod
			}
			both, inBudget := node("both"), WithLabel(budgeted, "true")
			spared := []*Object{bound("high", high, both), bound("low", low, both, inBudget)}
			victim := bound("victim", middle, node("one"), inBudget, requestingCPU("60m"))

			prioritized(ctx, cluster, fixtures.UnscheduledPod("preemptor"), highest, waitingFor(cluster.Namespace()), requestingCPU("60m"))

			Eventually(ctx, cluster.History(victim)).Should(HaveObserved(Terminating(victim)))
			for _, pod := range spared {
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
			}
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
