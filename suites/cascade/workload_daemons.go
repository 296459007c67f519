package cascade

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("DaemonSets and changes of nodes", func() {
	cluster := UseCluster()

	// onNode creates a node and a DaemonSet with a pod on it.
	onNode := func(ctx SpecContext, options ...ObjectOption) (node, daemons, pod *Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.UnscheduledPod("any"))
		node = cluster.Create(ctx, fixtures.Node("node"), labeledForDaemons)
		daemons = cluster.Create(ctx, fixtures.DaemonSet("daemons", nodeLabel, node.GetName()), append(options, gracefulPods)...)
		return node, daemons, cluster.AwaitDependents(ctx, daemons, 1)[0]
	}

	Specify("A DaemonSet must delete its pod from a node whose labels no longer match, within the grace period, and must create a pod when "+
		"the labels match again.",
		Behavior("cascade.workload.daemonset-node-labels", Core, KCM, SimulatedNode, Source(daemonSets),
			Promise("If node labels are changed, the DaemonSet will promptly add Pods to newly matching nodes and delete Pods from newly "+
				"not-matching nodes.")), func(ctx SpecContext) {
			node, daemons, pod := onNode(ctx)

			cluster.Update(ctx, node, WithLabel(nodeLabel, "elsewhere"))
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(graceful(pod)))
			cluster.Delete(ctx, pod, Grace(0))
			workloads.AwaitController(ctx, cluster, fixtures.DaemonSet("canary", nodeLabel, "nowhere")) // the controller knows that the pod is gone
			cluster.AwaitDependents(ctx, daemons, 1)

			cluster.Update(ctx, node, labeledForDaemons)
			cluster.AwaitDependents(ctx, daemons, 2)
		})

	Specify("The pods of a DaemonSet must remain on a node with the NoExecute taints not-ready and unreachable, and must tolerate both without "+
		"tolerationSeconds.",
		Behavior("cascade.workload.daemonset-tolerates", Core, KCM, SimulatedNode, Source(daemonSets),
			Promise("Any DaemonSet Pods running on such nodes will not be evicted.")), func(ctx SpecContext) {
			const simulated = nodeLabel // is also the key of the taint of such nodes
			node, _, pod := onNode(ctx, WithField([]any{map[string]any{"key": simulated, "operator": "Exists"}}, "spec", "template", "spec", "tolerations"))
			other := cluster.Create(ctx, fixtures.GhostBoundPod("other"), OnNode(node.GetName()), WithField([]any{
				map[string]any{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(0)},
			}, "spec", "tolerations"))

			cluster.Update(ctx, node, WithField([]any{
				map[string]any{"key": simulated, "effect": "NoSchedule"},
				map[string]any{"key": corev1.TaintNodeNotReady, "effect": "NoExecute"},
				map[string]any{"key": corev1.TaintNodeUnreachable, "effect": "NoExecute"},
			}, "spec", "taints"))

			Eventually(ctx, cluster.History(other)).Should(HaveObserved(Terminating(other)))
			workloads.AwaitController(ctx, cluster, fixtures.DaemonSet("canary", nodeLabel, "nowhere"))
			unlimited := func(taint string) OmegaMatcher {
				return HaveJSONPath(`{.spec.tolerations[?(@.key=="`+taint+`")].tolerationSeconds}`, "")
			}
			Expect(cluster.Get(ctx, pod)).To(And(Not(BeTerminating()), unlimited(corev1.TaintNodeNotReady), unlimited(corev1.TaintNodeUnreachable)))
		})
})
