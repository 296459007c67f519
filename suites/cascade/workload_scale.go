package cascade

import (
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// replicas sets the replicas of a workload.
func replicas(count int64) ObjectOption { return WithField(count, "spec", "replicas") }

var _ = Describe("Scaling down", func() {
	cluster := UseCluster()

	Specify("Scaling down a StatefulSet must delete the pod with the highest ordinal first, and must wait for its "+
		"removal before the next delete.",
		Behavior("cascade.workload.statefulset-reverse-order", Core, KCM,
			Source(statefulSets),
			Promise("Before a Pod is terminated, all of its successors must be completely shutdown.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.StatefulSet("ordered"), replicas(3), gracefulPods,
				WithField("OrderedReady", "spec", "podManagementPolicy"))
			var pods []*Object
			for count := range 3 {
				pods = cluster.AwaitDependents(ctx, set, count+1)
				becomesReady(ctx, cluster, pods[count])
			}

			cluster.Update(ctx, set, replicas(1))
			Eventually(ctx, cluster.History(pods[2])).Should(HaveObserved(Terminating(pods[2])))
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			Expect(cluster.Get(ctx, pods[1])).NotTo(BeTerminating())

			cluster.Delete(ctx, pods[2], Grace(0))
			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Deleted(pods[2]), Terminating(pods[1])))
			Expect(cluster.Get(ctx, pods[0])).NotTo(BeTerminating())
		})

	// ranked creates pods and a ReplicaSet that adopts them. It returns them in the expected order of deletion.
	ranked := func(ctx SpecContext) (set, unscheduled, pending, notReady, ready *Object) {
		GinkgoHelper()
		ranked := WithLabel(appLabel, "ranked")
		ready = cluster.Create(ctx, fixtures.GhostBoundPod("ready"), ranked)
		becomesReady(ctx, cluster, ready)
		notReady = cluster.Create(ctx, fixtures.GhostBoundPod("not-ready"), ranked)
		workloads.SetPhase(ctx, cluster, notReady, "Running")
		pending = cluster.Create(ctx, fixtures.GhostBoundPod("pending"), ranked)
		unscheduled = cluster.Create(ctx, fixtures.UnscheduledPod("unscheduled"), ranked)
		workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // the controller knows their states

		set = cluster.Create(ctx, fixtures.ReplicaSet("ranked"), replicas(4))
		adopted := func(pod *Object) EventMatcher { return Matching(pod, BeOwnedBy(set)) }
		Eventually(ctx, cluster.History(ready, notReady, pending, unscheduled)).Should(
			HaveObserved(Each(adopted, ready, notReady, pending, unscheduled)))
		return set, unscheduled, pending, notReady, ready
	}

	Specify("Scaling down a ReplicaSet must delete pending pods first, whether scheduled or not.",
		Behavior("cascade.workload.scale-down-pending-first", Core, KCM,
			Source(replicaSets), Promise("Pending (and unschedulable) pods are scaled down first")), func(ctx SpecContext) {
			set, unscheduled, pending, notReady, ready := ranked(ctx)

			cluster.Update(ctx, set, replicas(2))

			Eventually(ctx, cluster.History(unscheduled)).Should(HaveObserved(Deleted(unscheduled)))
			Eventually(ctx, cluster.History(pending)).Should(HaveObserved(Terminating(pending)))
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"))
			for _, pod := range []*Object{notReady, ready} {
				Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
			}
		})

	Specify("Scaling down a ReplicaSet deletes unscheduled pods before other pending pods, and pods that are not ready before ready ones.",
		Behavior("cascade.workload.scale-down-order", Observed, KCM, Source("pkg/controller/controller_utils.go")), func(ctx SpecContext) {
			set, unscheduled, pending, notReady, ready := ranked(ctx)

			pods := cluster.History(ready, notReady, pending, unscheduled)
			inOrder := []EventMatcher{Deleted(unscheduled), Terminating(pending), Terminating(notReady)}
			for i := range inOrder {
				cluster.Update(ctx, set, replicas(int64(3-i)))
				Eventually(ctx, pods).Should(HaveObserved(inOrder[:i+1]...))
			}
			Expect(cluster.Get(ctx, ready)).NotTo(BeTerminating())
		})

	Specify("Scaling down a ReplicaSet deletes the pod with the lower controller.kubernetes.io/pod-deletion-cost first.",
		Behavior("cascade.workload.deletion-cost", Observed, KCM,
			Source(replicaSets),
			Promise("Pods with lower deletion cost are preferred to be deleted before pods with higher deletion cost.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.ReplicaSet("cost"))
			pods := cluster.AwaitDependents(ctx, set, 2)
			for i, pod := range pods {
				cost := map[string]any{"controller.kubernetes.io/pod-deletion-cost": strconv.Itoa(10 * (i - 1))}
				cluster.Patch(ctx, pod, types.MergePatchType, map[string]any{"metadata": map[string]any{"annotations": cost}})
			}
			// Without a deletion cost the restarted pod would be deleted.
			restarted := map[string]any{"name": "main", "restartCount": 5, "image": "any", "imageID": "any", "ready": false}
			cluster.Patch(ctx, pods[1], types.MergePatchType, map[string]any{"status": map[string]any{"containerStatuses": []any{restarted}}}, "status")
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary")) // the controller knows all of that

			cluster.Update(ctx, set, replicas(1))

			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(Deleted(pods[0])))
			workloads.AwaitController(ctx, cluster, fixtures.ReplicaSet("canary"))
			Expect(cluster.Get(ctx, pods[1])).NotTo(BeTerminating())
		})
})

var _ = Describe("Status of workloads", func() {
	cluster := UseCluster()

	Specify("The terminatingReplicas of a ReplicaSet and its Deployment must count terminating pods.",
		Behavior("cascade.workload.terminating-replicas", Extended, KCM, Since("1.35"),
			Source(replicaSets),
			Promise("Terminating pods can be tracked using the `.status.terminatingReplicas` field of the ReplicaSet.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ReplicaSet("any"))
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			deployment := cluster.Create(ctx, fixtures.Deployment("terminating"), gracefulPods)
			set := cluster.AwaitDependents(ctx, deployment, 1)[0]
			pods := cluster.AwaitDependents(ctx, set, 2)
			mustCountTerminating(ctx, cluster, set)

			cluster.Delete(ctx, pods[0])

			for _, workload := range []*Object{set, deployment} {
				counted := And(HaveStatus("terminatingReplicas", int64(1)), HaveStatus("replicas", int64(2)))
				Eventually(ctx, cluster.History(workload)).Should(HaveObserved(Matching(workload, counted)))
			}
		})
})

// mustCountTerminating skips the spec when a ReplicaSet whose status is current has no terminatingReplicas. With the feature it has 0.
func mustCountTerminating(ctx SpecContext, cluster *Cluster, set *Object) {
	GinkgoHelper()
	Eventually(ctx, cluster.History(set)).Should(HaveObserved(Matching(set, HaveStatus("replicas", int64(2)))))
	if _, counts, _ := unstructured.NestedInt64(cluster.Get(ctx, set).Object, "status", "terminatingReplicas"); !counts {
		Skip("terminating pods are not counted: the feature gate DeploymentReplicaSetTerminatingReplicas is off")
	}
}

var _ = Describe("Revision history", func() {
	cluster := UseCluster()

	Specify("The oldest ReplicaSets of a Deployment and ControllerRevisions of a StatefulSet or DaemonSet beyond "+
		"revisionHistoryLimit must be deleted.",
		Behavior("cascade.workload.revision-history", Core, KCM,
			Source(deployments),
			Promise("You can set `.spec.revisionHistoryLimit` field in a Deployment ... The rest will be garbage-collected in the "+
				"background.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ReplicaSet("any"))
			cluster.Watch(ctx, fixtures.ControllerRevision())
			one := WithField(int64(1), "spec", "revisionHistoryLimit")
			owners := []*Object{
				cluster.Create(ctx, fixtures.Deployment("history"), replicas(0), one),
				cluster.Create(ctx, fixtures.StatefulSet("history"), replicas(0), one),
				cluster.Create(ctx, fixtures.DaemonSet("history", nodeLabel, "nowhere"), one),
			}
			var oldest, kept []*Object
			for count := range 2 {
				for _, workload := range owners {
					cluster.AwaitDependents(ctx, workload, count+1)
					cluster.Update(ctx, workload, revised(strconv.Itoa(count)))
				}
			}
			for _, workload := range owners {
				revisions := cluster.AwaitDependents(ctx, workload, 3)
				oldest, kept = append(oldest, revisions[0]), append(kept, revisions[1:]...)
			}

			Eventually(ctx, cluster.History(oldest...)).Should(HaveObserved(Each(Deleted, oldest...)))
			for _, workload := range owners { // handled once more
				handled := cluster.Update(ctx, workload, WithField(int64(1), "spec", "minReadySeconds")).GetGeneration()
				Eventually(ctx, cluster.History(workload)).Should(HaveObserved(Matching(workload, HaveStatus("observedGeneration", handled))))
			}
			cluster.Settle(ctx)
			for _, revision := range kept {
				Expect(cluster.Get(ctx, revision)).NotTo(BeTerminating())
			}
		})
})
