package graceful

import (
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// orphanedByNode limits how long the pod garbage collector takes: it checks every 20 s, and deletes a pod 40 s after it first missed its
// node (pkg/controller/podgc).
const orphanedByNode = 2 * time.Minute

var _ = Describe("Pod garbage collector", func() {
	cluster := UseCluster()

	Specify("The pod garbage collector must remove a pod that is bound to a node that does not exist.",
		Behavior("graceful.pod-gc-missing-node", Core, KCM, Slow, Source(podLifecycle),
			Promise("PodGC cleans up any Pods which satisfy any of the following conditions: ... are orphan Pods - bound to a node which no longer "+
				"exists")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(orphanedByNode)).Should(HaveObserved(Added(pod), Deleted(pod)))
		})

	Specify("The pod garbage collector must set the phase Failed and the condition DisruptionTarget with the reason "+
		"DeletionByPodGC before the deletion of a pod.",
		Behavior("graceful.pod-gc-status", Core, KCM, Slow, Source(podLifecycle),
			Promise("PodGC will also mark them as failed ... Also, PodGC adds a Pod disruption condition when cleaning up an orphan Pod.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), Held, repetitive)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(orphanedByNode)).Should(HaveObserved(
				Matching(pod, And(HavePhase(corev1.PodFailed), HaveConditionSaying(string(corev1.DisruptionTarget), "DeletionByPodGC"), Not(BeTerminating()))),
				Terminating(pod)))
		})

	Specify("The pod garbage collector must remove a terminating pod on a node that is not ready only if the node has "+
		"the taint node.kubernetes.io/out-of-service.",
		Behavior("graceful.pod-gc-out-of-service", Core, KCM, SimulatedNode, Slow, Source(podLifecycle),
			Promise("PodGC cleans up any Pods which ... are terminating Pods, bound to a non-ready node tainted with "+
				"`node.kubernetes.io/out-of-service`.")), func(ctx SpecContext) {
			// terminatingOn creates a terminating pod on a node without a kubelet, whose status has these conditions.
			terminatingOn := func(name string, conditions []any, taints ...ObjectOption) *Object {
				node := cluster.Create(ctx, fixtures.Node(name))
				cluster.SetStatus(ctx, node, map[string]any{"conditions": conditions})
				pod := cluster.Create(ctx, fixtures.GhostBoundPod(name), OnNode(node.GetName()))
				cluster.Delete(ctx, pod, Grace(600))
				for _, taint := range taints {
					cluster.Update(ctx, node, taint)
				}
				return cluster.Get(ctx, pod)
			}
			outOfService := tainted(corev1.TaintNodeOutOfService)
			ready := []any{map[string]any{"type": string(corev1.NodeReady), "status": string(corev1.ConditionTrue)}}
			onReady := terminatingOn("ready", ready, outOfService)
			onSilent := terminatingOn("silent", nil)
			gone := terminatingOn("gone", nil, outOfService)
			// The controller comes to unscheduled pods last.
			last := cluster.Create(ctx, fixtures.UnscheduledPod("last"), Held)
			cluster.Delete(ctx, last)

			within := cluster.Session().AtLeast(orphanedByNode)
			Eventually(ctx, cluster.History(gone)).WithTimeout(within).Should(HaveObserved(Terminating(gone), Deleted(gone)))
			Eventually(ctx, cluster.History(last)).WithTimeout(within).Should(HaveObserved(Terminating(last), Matching(last, HavePhase(corev1.PodFailed))))
			for _, pod := range []*Object{onReady, onSilent} {
				Expect(cluster.Get(ctx, pod)).To(And(HaveDeletionTimestamp(pod.GetDeletionTimestamp()), HaveGracePeriod(600), HavePhase(corev1.PodPending)))
			}
		})

	Specify("The pod garbage collector must set the phase Failed on an unscheduled terminating pod that a finalizer holds.",
		Behavior("graceful.pod-gc-unscheduled", Core, KCM, Slow, Source(podLifecycle),
			Promise("are unscheduled terminating Pods ... PodGC will also mark them as failed if they are in a non-terminal phase.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"), Held)

			cluster.Delete(ctx, pod)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(orphanedByNode)).Should(HaveObserved(
				Terminating(pod), Matching(pod, HavePhase(corev1.PodFailed))))
		})

	Specify("The pods of a deleted Node must be removed, with the phase Failed and the condition DisruptionTarget before.",
		Behavior("graceful.node-deleted", Core, KCM, SimulatedNode, Slow, Source(podLifecycle),
			Promise("PodGC cleans up any Pods which ... are orphan Pods - bound to a node which no longer exists")), func(ctx SpecContext) {
			node := cluster.Create(ctx, fixtures.Node("node"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()))

			cluster.Delete(ctx, node)

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(orphanedByNode)).Should(HaveObserved(
				Matching(pod, And(HavePhase(corev1.PodFailed), HaveConditionSaying(string(corev1.DisruptionTarget), "DeletionByPodGC"))),
				Deleted(pod)))
		})

	Specify("The pod garbage collector must delete a pod that has ended without a change of its phase, and without the condition DisruptionTarget.",
		Behavior("graceful.pod-gc-ended", Core, KCM, Slow, Source(podLifecycle),
			Promise("Along with cleaning up the Pods, PodGC will also mark them as failed if they are in a non-terminal phase.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), Held)
			workloads.SetPhase(ctx, cluster, pod, "Succeeded")

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(orphanedByNode)).Should(HaveObserved(Terminating(pod)))
			Expect(cluster.Get(ctx, pod)).To(And(HavePhase(corev1.PodSucceeded), Not(HaveCondition(string(corev1.DisruptionTarget)))))
		})
})

// repetitive gives a pod an environment variable twice, which the API permits except in a server-side apply.
var repetitive = inFirstContainer(func(container map[string]any) {
	variable := map[string]any{"name": "TWICE", "value": "yes"}
	container["env"] = []any{variable, maps.Clone(variable)}
})

var _ = Describe("Disruption conditions", func() {
	cluster := UseCluster()

	Specify("The condition DisruptionTarget of a pod that was not deleted must become False after some time.",
		Behavior("graceful.stale-disruption-condition", Core, KCM, Source(disruptions),
			Promise("that Pod might then not actually be deleted. In such a situation, after some time, the Pod disruption condition will be "+
				"cleared.")), func(ctx SpecContext) {
			workloads.MustServeBudgets(ctx, cluster) // the controller that clears it does not start without them
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"))
			long := cluster.Now(ctx).Add(-time.Hour).UTC().Format(time.RFC3339)

			cluster.SetStatus(ctx, pod, map[string]any{"conditions": []any{map[string]any{
				"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue), "reason": "Interrupted", "lastTransitionTime": long,
			}}})

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Matching(pod, HaveCondition(string(corev1.DisruptionTarget))), Matching(pod, HaveConditionFalse(string(corev1.DisruptionTarget)))))
		})
})
