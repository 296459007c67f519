package cascade

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// revised changes the pod template of a workload. The annotation shows which template a pod was created from (ofRevision).
func revised(revision string) ObjectOption {
	return WithField(revision, "spec", "template", "metadata", "annotations", "revision")
}

// ofRevision matches a pod that was created from a revised template; from the first one if empty.
func ofRevision(revision string) OmegaMatcher {
	return HaveJSONPath("{.metadata.annotations.revision}", revision)
}

// onDelete is the update strategy OnDelete.
func onDelete(workload *Object) { WithField("OnDelete", "spec", "updateStrategy", "type")(workload) }

// maxUnavailable sets how many pods of a Deployment may be unavailable during a rolling update. One more pod may exist.
func maxUnavailable(count int64) ObjectOption {
	return WithField(map[string]any{"maxUnavailable": count, "maxSurge": int64(1)}, "spec", "strategy", "rollingUpdate")
}

// byName orders the pods of a StatefulSet by ordinal.
func byName(a, b *Object) int { return strings.Compare(a.GetName(), b.GetName()) }

// becomesReady reports that a pod runs and is ready, as its node would.
func becomesReady(ctx SpecContext, cluster *Cluster, pod *Object) {
	GinkgoHelper()
	ready := []any{map[string]any{"type": "Ready", "status": "True"}}
	cluster.Patch(ctx, pod, types.MergePatchType, map[string]any{"status": map[string]any{"phase": "Running", "conditions": ready}}, "status")
}

var _ = Describe("Updates of StatefulSets and DaemonSets", func() {
	cluster := UseCluster()

	// readySet creates a StatefulSet, reports its two pods as ready, and returns them by ordinal once the controller knows that.
	readySet := func(ctx SpecContext, name string, options ...ObjectOption) (set *Object, pods []*Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		set = cluster.Create(ctx, fixtures.StatefulSet(name), options...)
		pods = cluster.AwaitDependents(ctx, set, 2)
		slices.SortFunc(pods, byName)
		for _, pod := range pods {
			becomesReady(ctx, cluster, pod)
		}
		Eventually(ctx, cluster.History(set)).Should(HaveObserved(Matching(set, HaveStatus("readyReplicas", int64(2)))))
		return set, pods
	}

	Specify("A rolling update of a StatefulSet must delete the highest ordinal first, within its grace period, and must delete "+
		"the next pod only after the new pod is ready.",
		Behavior("cascade.workload.statefulset-rolling-update", Core, KCM,
			Source(statefulSets),
			Promise("from the largest ordinal to the smallest ... waits until an updated Pod is Running and Ready prior to updating its "+
				"predecessor.")), func(ctx SpecContext) {
			set, pods := readySet(ctx, "rolling", gracefulPods)
			waits := func() {
				GinkgoHelper()
				workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
				Expect(cluster.Get(ctx, pods[0])).NotTo(BeTerminating())
			}

			cluster.Update(ctx, set, revised("next"))
			Eventually(ctx, cluster.History(pods[1])).Should(HaveObserved(graceful(pods[1])))
			waits()
			cluster.Delete(ctx, pods[1], Grace(0))
			updated := cluster.AwaitDependents(ctx, set, 3)[2]
			Expect(updated).To(ofRevision("next"))
			waits()

			becomesReady(ctx, cluster, updated)
			Eventually(ctx, cluster.History(pods[0])).Should(HaveObserved(graceful(pods[0])))
		})

	Specify("A StatefulSet with a partition must update the pods from that ordinal on, and must neither delete the other pods "+
		"nor recreate them from the new template.",
		Behavior("cascade.workload.statefulset-partition", Core, KCM,
			Source(statefulSets),
			Promise("Pods with an ordinal that is less than the partition ... even if they are deleted, they will be recreated at the previous "+
				"version.")), func(ctx SpecContext) {
			set, pods := readySet(ctx, "partition", WithField(int64(1), "spec", "updateStrategy", "rollingUpdate", "partition"))

			cluster.Update(ctx, set, revised("next"))
			updated := cluster.AwaitDependents(ctx, set, 3)[2]
			Expect(updated).To(ofRevision("next"))
			becomesReady(ctx, cluster, updated)
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			Expect(cluster.Get(ctx, pods[0])).To(And(BeSameObjectAs(pods[0]), Not(BeTerminating())))

			cluster.Delete(ctx, pods[0])
			Expect(cluster.AwaitDependents(ctx, set, 4)[3]).To(ofRevision(""))
		})

	// updatedOnDelete changes the template, and expects that only a deleted pod is recreated from the new one.
	updatedOnDelete := func(ctx SpecContext, workload, canary *Object, pods []*Object) {
		GinkgoHelper()
		cluster.Update(ctx, workload, revised("next"))
		workloads.AwaitController(ctx, cluster, canary)
		for _, pod := range pods {
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), Not(BeTerminating())))
		}

		cluster.Delete(ctx, pods[0])
		Expect(cluster.AwaitDependents(ctx, workload, len(pods)+1)[len(pods)]).To(ofRevision("next"))
	}

	Specify("A StatefulSet with the update strategy OnDelete must not delete pods when its template changes, and must recreate "+
		"a deleted pod from the new template.",
		Behavior("cascade.workload.statefulset-on-delete", Core, KCM,
			Source(statefulSets),
			Promise("the StatefulSet controller will not automatically update the Pods in a StatefulSet. Users must manually delete Pods to cause "+
				"the controller to create new Pods")), func(ctx SpecContext) {
			set, pods := readySet(ctx, "on-delete", onDelete)
			updatedOnDelete(ctx, set, fixtures.StatefulSet("canary"), pods)
		})

	Specify("A DaemonSet with the update strategy OnDelete must not delete pods when its template changes, and must recreate "+
		"a deleted pod from the new template.",
		Behavior("cascade.workload.daemonset-on-delete", Core, KCM, SimulatedNode,
			Source("tasks/manage-daemon/update-daemon-set"),
			Promise("after you update a DaemonSet template, new DaemonSet pods will *only* be created when you manually delete old DaemonSet "+
				"pods.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			daemons := createOnOwnNode(ctx, cluster, "on-delete", onDelete)
			updatedOnDelete(ctx, daemons, fixtures.DaemonSet("canary", nodeLabel, "nowhere"), cluster.AwaitDependents(ctx, daemons, 1))
		})
})

var _ = Describe("Updates of Deployments", func() {
	cluster := UseCluster()

	Specify("A rolling update of a Deployment with maxUnavailable 0 must delete old pods only after new pods are ready, and must then "+
		"delete all of them.",
		Behavior("cascade.workload.deployment-rolling-update", Core, KCM,
			Source(deployments), Promise("It does not kill old Pods until a sufficient number of new Pods have come up")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ReplicaSet("any"))
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			deployment := cluster.Create(ctx, fixtures.Deployment("rolling"), maxUnavailable(0))
			old := cluster.AwaitDependents(ctx, cluster.AwaitDependents(ctx, deployment, 1)[0], 2)
			for _, pod := range old {
				becomesReady(ctx, cluster, pod)
			}
			Eventually(ctx, cluster.History(deployment)).Should(HaveObserved(Matching(deployment, HaveStatus("availableReplicas", int64(2)))))

			cluster.Update(ctx, deployment, revised("next"))
			next := cluster.AwaitDependents(ctx, deployment, 2)[1]
			updated := cluster.AwaitDependents(ctx, next, 1)[0]
			workloads.AwaitController(ctx, cluster, fixtures.Deployment("canary"), fixtures.ReplicaSet("canary"))
			for _, pod := range old {
				Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
			}

			becomesReady(ctx, cluster, updated)
			becomesReady(ctx, cluster, cluster.AwaitDependents(ctx, next, 2)[1])
			Eventually(ctx, cluster.History(old...)).Should(HaveObserved(Each(Deleted, old...)))
		})

	Specify("The old ReplicaSets of a Deployment beyond revisionHistoryLimit must remain until the rollout is complete, and with the limit 0 "+
		"none must remain after that.",
		Behavior("cascade.workload.deployment-history-waits", Core, KCM,
			Source(deployments), Promise("The cleanup only starts **after** a Deployment reaches a complete state.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ReplicaSet("any"))
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			deployment := cluster.Create(ctx, fixtures.Deployment("history"), replicas(1), maxUnavailable(1),
				WithField(int64(0), "spec", "revisionHistoryLimit"))
			old := cluster.AwaitDependents(ctx, deployment, 1)[0]
			scaledTo := func(count string) EventMatcher {
				return Matching(old, And(HaveJSONPath("{.spec.replicas}", count), HaveJSONPath("{.status.replicas}", count)))
			}
			Eventually(ctx, cluster.History(old)).Should(HaveObserved(scaledTo("1")))

			cluster.Update(ctx, deployment, revised("next"))
			updated := cluster.AwaitDependents(ctx, cluster.AwaitDependents(ctx, deployment, 2)[1], 1)[0]
			Eventually(ctx, cluster.History(old)).Should(HaveObserved(scaledTo("1"), scaledTo("0")))
			workloads.AwaitController(ctx, cluster, fixtures.Deployment("canary"))
			Expect(cluster.Get(ctx, old)).NotTo(BeTerminating())

			becomesReady(ctx, cluster, updated)
			Eventually(ctx, cluster.History(old)).Should(HaveObserved(Deleted(old)))
		})
})
