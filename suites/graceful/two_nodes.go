package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// unreachable limits how long a cluster takes to notice a lost node, 50 s by default, and to evict its pods.
const unreachable = 2 * time.Minute

var _ = Describe("Pods on lost nodes", Serial, func() {
	cluster := UseCluster()

	// run creates a workload with one pod, and returns both when the pod is ready.
	run := func(ctx SpecContext, manifest *Object) (workload, pod *Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		cluster.Watch(ctx, fixtures.ReplicaSet("any"))
		workload = cluster.Create(ctx, manifest)
		controller := workload
		if workload.GetKind() == "Deployment" {
			controller = cluster.AwaitDependents(ctx, workload, 1)[0]
		}
		pod = cluster.AwaitDependents(ctx, controller, 1)[0]
		workloads.AwaitReady(ctx, cluster, pod)
		return controller, cluster.Get(ctx, pod)
	}

	// replaced waits until another node runs another pod of a workload.
	replaced := func(ctx SpecContext, controller, lost *Object) {
		GinkgoHelper()
		Expect(nodes.Of(workloads.AwaitReplacement(ctx, cluster, controller, lost))).NotTo(Equal(nodes.Of(lost)), "another node runs the new pod")
	}

	Specify("A pod that is terminating when its node is lost must remain beyond its grace period, and must be removed after a new "+
		"machine has replaced the node.",
		Behavior("graceful.two-nodes.lost-while-terminating", Core, Node, TwoNodes, Disruptive, Disturbs(Node), Source(forceDelete),
			Promise("The kubelet on the unresponsive Node starts responding, kills the Pod and removes the entry from the apiserver.")),
		func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main"}))
			terminating := Require(cluster.TryDelete(ctx, pod, Grace(10))).Object
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(pod))

			start := components.Stop(ctx, cluster, components.Machine(nodes.Of(pod)))
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(10)))

			start(ctx)
			workloads.AwaitDeletion(ctx, cluster, pod)
		})

	Specify("A StatefulSet must not replace a terminating pod on a lost node, even after the grace period, until the pod is removed.",
		Behavior("graceful.two-nodes.statefulset-waits", Core, Node, TwoNodes, KCM, Disruptive, Disturbs(Node), Source(forceDelete),
			Promise("A Pod is not deleted automatically when a node is unreachable.")), func(ctx SpecContext) {
			set, pod := run(ctx, fixtures.OnRealNode(fixtures.StatefulSet("set")))
			components.Stop(ctx, cluster, components.Machine(nodes.Of(pod)))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(1))).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			cluster.Update(ctx, set, WithLabel(Domain+"/reconciled", "after-the-grace-period"))
			workloads.AwaitController(ctx, cluster, fixtures.StatefulSet("canary"))
			Expect(cluster.AwaitDependents(ctx, set, 1)).To(ConsistOf(BeSameObjectAs(pod)), "the terminating pod is not replaced")
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(1)))

			cluster.Delete(ctx, pod, Grace(0))
			replacement := cluster.AwaitDependents(ctx, set, 2)[1]
			Expect(replacement.GetName()).To(Equal(pod.GetName()), "the new pod has the same name")
		})

	Specify("A Deployment must replace the pod of a lost node with a pod on another node, while the pod on the lost node is terminating.",
		Behavior("graceful.two-nodes.deployment-replaces", Core, Node, TwoNodes, KCM, Disruptive, Disturbs(Node), Slow, Source(podLifecycle),
			Promise("If a node dies, the Pods running on (or scheduled to run on) that node are marked for deletion.")), func(ctx SpecContext) {
			replicaSet, pod := run(ctx, fixtures.OnRealNode(fixtures.Deployment("deployment")))

			components.Stop(ctx, cluster, components.Machine(nodes.Of(pod)))

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(unreachable)).Should(HaveObserved(Terminating(pod)))
			replaced(ctx, replicaSet, pod)
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating()))
		})

	Specify("The pod of a StatefulSet on a lost node must be removed and replaced on another node after the lost node has the taint "+
		"node.kubernetes.io/out-of-service.",
		Behavior("graceful.two-nodes.out-of-service", Core, Node, TwoNodes, KCM, Disruptive, Disturbs(Node), Slow, Since("1.28"),
			Source("concepts/cluster-administration/node-shutdown"),
			Promise("If a Node is marked out-of-service with this taint, the pods on the node will be forcefully deleted if there are no matching "+
				"tolerations")), func(ctx SpecContext) {
			set, pod := run(ctx, fixtures.OnRealNode(fixtures.StatefulSet("set")))
			lost := nodes.Of(pod)

			components.Stop(ctx, cluster, components.Machine(lost))
			components.Stop(ctx, cluster, components.InService(lost))

			Eventually(ctx, cluster.History(pod)).WithTimeout(cluster.Session().AtLeast(unreachable)).Should(HaveObserved(
				Terminating(pod), Matching(pod, HavePhase(corev1.PodFailed)), Deleted(pod)))
			replaced(ctx, set, pod)
		})

	Specify("While evictions drain a node, the last pod that a budget requires must stay until a replacement is ready on another node.",
		Behavior("graceful.two-nodes.budget-across-drain", Core, Node, TwoNodes, KCM, Disruptive, Disturbs(Node),
			Source("tasks/administer-cluster/safely-drain-node"),
			Promise("Safe evictions allow the pod's containers to gracefully terminate and will respect the PodDisruptionBudgets you have specified.")),
		func(ctx SpecContext) {
			const drained, app = Domain + "/drained", "app"
			pod := func(name string) *Object {
				return fixtures.NodePod(name, fixtures.Container{Name: "main", OnTerm: "exit 0"})
			}
			one := workloads.RunPod(ctx, cluster, pod("one"), WithLabel(app, "set"), WithLabel(drained, "yes"))
			two := workloads.RunPod(ctx, cluster, pod("two"), WithLabel(app, "set"), WithLabel(drained, "yes"), OnNode(nodes.Of(one)))
			awaitBudget(ctx, cluster, cluster.Create(ctx, fixtures.PodDisruptionBudgetOf(1, "budget", app, "set")), 2, 2)
			set := cluster.Create(ctx, fixtures.OnRealNode(fixtures.ReplicaSet("set")), WithField(int64(2), "spec", "replicas"), awayFrom(drained, "yes"))
			Eventually(ctx, cluster.History(one, two)).Should(HaveObserved(
				Each(func(pod *Object) EventMatcher { return Matching(pod, BeOwnedBy(set)) }, one, two)))

			Expect(cluster.TryEvict(ctx, one)).To(beAllowed())
			replacement := cluster.AwaitDependents(ctx, set, 1)[0]
			Eventually(ctx, func() Response { return cluster.TryEvict(ctx, two) }).WithTimeout(cluster.Session().AtLeast(unreachable)).Should(beAllowed())

			Eventually(ctx, cluster.History(replacement, two)).Should(HaveObserved(
				Matching(replacement, HaveCondition(string(corev1.PodReady))), Terminating(two)))
			Expect(nodes.Of(cluster.Get(ctx, replacement))).NotTo(Equal(nodes.Of(one)), "another node runs the new pod")
		})
})

// awayFrom keeps the pods of a workload from nodes that run a pod with a label.
func awayFrom(label, value string) ObjectOption {
	return WithField([]any{map[string]any{
		"topologyKey": corev1.LabelHostname, "labelSelector": map[string]any{"matchLabels": map[string]any{label: value}},
	}}, "spec", "template", "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
}
