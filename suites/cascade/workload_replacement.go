package cascade

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Replacement of deleted pods", func() {
	cluster := UseCluster()

	Specify("A ReplicaSet or ReplicationController replaces a deleted pod while the pod is still terminating.",
		Behavior("cascade.workload.replicaset-replacement", Observed, KCM, Source("pkg/controller/controller_utils.go")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			for _, manifest := range []*Object{fixtures.ReplicaSet("at-once"), fixtures.ReplicationController("at-once")} {
				controller := cluster.Create(ctx, manifest, gracefulPods)
				pod := cluster.AwaitDependents(ctx, controller, 2)[0]

				cluster.Delete(ctx, pod)

				cluster.AwaitDependents(ctx, controller, 3)
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), BeOwnedBy(controller)))
			}
		})

	Specify("A StatefulSet must replace a deleted pod only after the pod is removed, with a pod of the same name.",
		Behavior("cascade.workload.statefulset-replacement", Core, KCM,
			Source(forceDelete), Promise(atMostOne)), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.StatefulSet("waits"), gracefulPods)
			pod := cluster.AwaitDependents(ctx, set, 2)[0]

			cluster.Delete(ctx, pod)
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			Expect(cluster.AwaitDependents(ctx, set, 2)).To(ContainElement(BeSameObjectAs(pod)), "the terminating pod is not replaced")
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(30)))

			cluster.Delete(ctx, pod, Grace(0))
			replacement := cluster.AwaitDependents(ctx, set, 3)[2]
			Expect(replacement.GetName()).To(Equal(pod.GetName()), "the new pod has the same name")
			Eventually(ctx, cluster.History(pod, replacement)).Should(HaveObserved(Deleted(pod), Added(replacement)))
		})

	Specify("A StatefulSet must give the pods that it deletes their grace period, and must neither shorten the grace period of a "+
		"terminating pod nor delete that pod by force.",
		Behavior("cascade.workload.statefulset-never-forces", Core, KCM, Source(forceDelete), Promise(atMostOne)), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.StatefulSet("never-forces"), gracefulPods)
			pods := cluster.AwaitDependents(ctx, set, 2)
			slices.SortFunc(pods, byName)
			deleted, surplus := pods[0], pods[1]

			cluster.Delete(ctx, deleted, Grace(300))
			cluster.Update(ctx, set, replicas(1))

			Eventually(ctx, cluster.History(surplus)).Should(HaveObserved(Terminating(surplus)))
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			Expect(cluster.Get(ctx, deleted)).To(And(BeTerminating(), HaveGracePeriod(300)))
			Expect(cluster.Get(ctx, surplus)).To(And(BeTerminating(), HaveGracePeriod(30)))
			cluster.AwaitDependents(ctx, set, 2)
		})

	Specify("A StatefulSet must replace a pod that has failed or succeeded.",
		Behavior("cascade.workload.statefulset-ended-pod", Core, KCM,
			Source(forceDelete), Promise("The StatefulSet controller is responsible for creating, scaling and deleting members of the StatefulSet.")),
		func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			set := cluster.Create(ctx, fixtures.StatefulSet("ended"), gracefulPods)
			pods := cluster.AwaitDependents(ctx, set, 2)

			workloads.SetPhase(ctx, cluster, pods[0], "Failed")
			workloads.SetPhase(ctx, cluster, pods[1], "Succeeded")

			Eventually(ctx, cluster.History(pods...)).Should(HaveObserved(Each(Deleted, pods...)))
			var names []string
			for _, pod := range cluster.AwaitDependents(ctx, set, 4)[2:] {
				names = append(names, pod.GetName())
			}
			Expect(names).To(ConsistOf(pods[0].GetName(), pods[1].GetName()), "the new pods have the same names")
		})

	Specify("A DaemonSet replaces a deleted pod only after the pod is removed or has a terminal phase.",
		Behavior("cascade.workload.daemonset-replacement", Observed, KCM, SimulatedNode, Source("pkg/controller/daemon/daemon_controller.go")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			node := cluster.Create(ctx, fixtures.Node("node"), labeledForDaemons)
			daemons := func(name string) (workload, pod *Object) {
				workload = cluster.Create(ctx, fixtures.DaemonSet(name, nodeLabel, node.GetName()), gracefulPods)
				return workload, cluster.AwaitDependents(ctx, workload, 1)[0]
			}
			one, gone := daemons("gone")
			other, terminal := daemons("terminal")

			cluster.Delete(ctx, gone)
			cluster.Delete(ctx, terminal)
			workloads.AwaitController(ctx, cluster, fixtures.DaemonSet("canary", nodeLabel, node.GetName()))
			cluster.AwaitDependents(ctx, one, 1)
			cluster.AwaitDependents(ctx, other, 1)

			cluster.Delete(ctx, gone, Grace(0))
			cluster.AwaitDependents(ctx, one, 2)
			workloads.SetPhase(ctx, cluster, terminal, "Failed")
			cluster.AwaitDependents(ctx, other, 2)
			Expect(cluster.Get(ctx, terminal)).To(BeTerminating())
		})

	Specify("The pods of a DaemonSet must be deleted when their Node is deleted.",
		Behavior("cascade.workload.daemonset-node-goes", Core, KCM, SimulatedNode, Source(daemonSets),
			Promise("As nodes are removed from the cluster, those Pods are garbage collected.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			node := cluster.Create(ctx, fixtures.Node("node"), labeledForDaemons)
			daemons := cluster.Create(ctx, fixtures.DaemonSet("daemons", nodeLabel, node.GetName()))
			pod := cluster.AwaitDependents(ctx, daemons, 1)[0]

			cluster.Delete(ctx, node)
			// A deleted Node is noticed with the next event that concerns the DaemonSet.
			cluster.Create(ctx, fixtures.Node("later"), WithLabel(nodeLabel, node.GetName()))

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
			Expect(cluster.TryGet(ctx, cluster.AwaitDependents(ctx, daemons, 2)[1])).NotTo(BeGone(), "the pod of the other Node remains")
		})

	Specify("A Deployment with the strategy Recreate must give the old pods their grace period, and must create new pods only after "+
		"the old pods are removed.",
		Behavior("cascade.workload.deployment-recreate", Core, KCM,
			Source(deployments), Promise("Successful removal is awaited before any Pod of the new revision is created.")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.ReplicaSet("any"))
			cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
			deployment := cluster.Create(ctx, fixtures.Deployment("recreate"), gracefulPods, WithField("Recreate", "spec", "strategy", "type"))
			old := cluster.AwaitDependents(ctx, cluster.AwaitDependents(ctx, deployment, 1)[0], 2)

			cluster.Update(ctx, deployment, revised("next"))

			Eventually(ctx, cluster.History(old...)).Should(HaveObserved(Each(graceful, old...)))
			cluster.Delete(ctx, old[0], Grace(0))
			workloads.AwaitController(ctx, cluster, fixtures.Deployment("canary"), fixtures.ReplicaSet("canary"))
			cluster.AwaitDependents(ctx, deployment, 1)
			Expect(cluster.Get(ctx, old[1])).To(And(BeTerminating(), HaveGracePeriod(30)))

			cluster.Delete(ctx, old[1], Grace(0))
			cluster.AwaitDependents(ctx, cluster.AwaitDependents(ctx, deployment, 2)[1], 2)
		})
})

var _ = Describe("Workloads in foreground deletion", func() {
	cluster := UseCluster()

	Specify("A workload in foreground deletion does not replace its deleted pods and ReplicaSets.",
		Behavior("cascade.foreground.no-replacements", Observed, GC, KCM, SimulatedNode, Source("pkg/controller/replicaset/replica_set.go")), func(ctx SpecContext) {
			var families []workloadFamily
			var makes []*Object
			for _, kind := range slices.DeleteFunc(slices.Clone(workloadKinds), func(kind workloadKind) bool { return kind.name == "CronJob" }) {
				kind = kind.withoutRevisions()
				family := kind.family(ctx, cluster)
				cluster.Create(ctx, fixtures.ConfigMap("keeps-"+kind.id()), OwnedBy(family.owner, Blocking), Held)
				families = append(families, family)
				makes = append(makes, kind.makes...)
			}
			cluster.AwaitCollectorSync(ctx, append(makes, fixtures.ConfigMap("any"))...)

			for _, family := range families {
				cluster.Delete(ctx, family.owner, Foreground)
			}
			for _, family := range families {
				made := slices.Concat(family.children, family.grandchildren)
				Eventually(ctx, cluster.History(made...)).Should(HaveObserved(Each(Deleted, made...)))
			}

			job := families[len(families)-1].owner
			Eventually(ctx, cluster.History(job)).Should(HaveObserved(Matching(job, And(BeTerminating(), HaveStatus("active", int64(0))))))
			workloads.AwaitController(ctx, cluster, fixtures.ReplicationController("canary"), fixtures.ReplicaSet("canary"),
				fixtures.Deployment("canary"), fixtures.StatefulSet("canary"), fixtures.DaemonSet("canary", nodeLabel, "nowhere"))
			for _, family := range families {
				Expect(cluster.Get(ctx, family.owner)).To(BeTerminating())
				Expect(cluster.AwaitDependents(ctx, family.owner, len(family.children)+1)).To(ContainElement(BeSameObjectAs(family.children[0])))
				if len(family.grandchildren) > 0 {
					cluster.AwaitDependents(ctx, family.children[0], len(family.grandchildren))
				}
			}
		})
})

// withoutRevisions is the kind without ControllerRevisions, which a StatefulSet in foreground deletion recreates.
func (w workloadKind) withoutRevisions() workloadKind {
	others := slices.DeleteFunc(slices.Clone(w.makes), func(made *Object) bool { return made.GetKind() == "ControllerRevision" })
	w.children -= len(w.makes) - len(others)
	w.makes = others
	return w
}
