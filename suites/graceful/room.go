package graceful

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

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

// ready reports a node as ready, as its kubelet does, with the current time.
func ready(node *Object) {
	now := metav1.Now().UTC().Format(time.RFC3339)
	WithField([]any{map[string]any{
		"type": string(corev1.NodeReady), "status": string(corev1.ConditionTrue), "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now,
	}}, "status", "conditions")(node)
}

// haveTaint matches a node with a taint.
func haveTaint(key string) types.GomegaMatcher {
	return Property("have the taint "+key, func(node *Object) bool {
		return slices.ContainsFunc(taintsOf(node), func(taint any) bool { return taint.(map[string]any)["key"] == key })
	})
}

// waitingFor makes a pod one that is to be scheduled on a node with this label.
func waitingFor(label string) ObjectOption {
	return func(pod *Object) {
		WithField(map[string]any{nodeLabel: label}, "spec", "nodeSelector")(pod)
		WithField([]any{map[string]any{"operator": "Exists"}}, "spec", "tolerations")(pod)
		WithField(corev1.DefaultSchedulerName, "spec", "schedulerName")(pod)
	}
}

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
	// scheduled waits until a pod is scheduled.
	scheduled := func(ctx SpecContext, pod *Object) {
		GinkgoHelper()
		Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, HaveCondition(string(corev1.PodScheduled)))))
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

	Specify("A waiting pod is scheduled after the removal of a pod with anti-affinity to it, or of a pod nominated for its node.",
		Behavior("graceful.removal-makes-room", Observed, KCM, SimulatedNode, Since("1.36"), Source("pkg/scheduler/eventhandlers.go")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			shunned, crowded := cluster.FreeName("shunned"), cluster.FreeName("crowded")
			loner := bound(ctx, "loner", node(ctx, "shunned", "9", shunned), alone)
			crowdedNode := node(ctx, "crowded", "1", crowded)
			// It is gated, because each attempt to schedule it would end the nomination.
			nominated := cluster.Create(ctx, fixtures.UnscheduledPod("nominated"), waitingFor("none"), gated)
			cluster.SetStatus(ctx, nominated, map[string]any{"nominatedNodeName": crowdedNode.GetName()})
			afterLoner, afterNominated := waits(ctx, "shunned", shunned, WithLabel(like, "loner")), waits(ctx, "crowded", crowded)

			cluster.Delete(ctx, nominated) // first, because the removal of a pod with a node lets it be tried, too
			scheduled(ctx, afterNominated)
			cluster.Delete(ctx, loner, Grace(0))
			scheduled(ctx, afterLoner)
		})

	Specify("A waiting pod is scheduled after the removal of the Nodes without whose domain the pods of the other domains are evenly spread.",
		Behavior("graceful.node-removal-makes-room", Observed, KCM, SimulatedNode, Since("1.32"), Source("pkg/scheduler/eventhandlers.go")),
		func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			label, zone := cluster.FreeName("zoned"), Domain+"/"+cluster.FreeName("zone")
			full := node(ctx, "full", "9", label, WithLabel(zone, "full"), ready)
			empty := node(ctx, "empty", "9", "others", WithLabel(zone, "empty"), ready)
			other := node(ctx, "other", "9", "others", WithLabel(zone, "full"), ready)
			bound(ctx, "first", full, WithLabel(like, "spread"))
			for _, node := range []*Object{full, empty, other} { // another taint would let the pod be tried, too
				Eventually(ctx, cluster.History(node)).Should(HaveObserved(Matching(node, Not(haveTaint(corev1.TaintNodeNotReady)))))
			}
			pod := waits(ctx, "zoned", label, WithLabel(like, "spread"), spread(zone))

			cluster.Delete(ctx, empty)
			cluster.Delete(ctx, other) // because the scheduler may try the pod before it knows that the first one is gone

			scheduled(ctx, pod)
		})

	Specify("The scheduler has no error for the first pod that it tries after the removal of a Node with pods.",
		Behavior("graceful.node-removed-before-pods", Observed, KCM, SimulatedNode, Source("pkg/scheduler/backend/cache/cache.go")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			label := cluster.FreeName("full")
			full, removed := node(ctx, "full", "0", label), node(ctx, "removed", "9", "others")
			bound(ctx, "left", removed)
			pod := waits(ctx, "waiting", label)

			cluster.Delete(ctx, removed)
			cluster.SetStatus(ctx, full, map[string]any{"capacity": map[string]any{"pods": "1"}, "allocatable": map[string]any{"pods": "1"}})

			scheduled(ctx, pod)
			failed := HaveJSONPath(`{.status.conditions[?(@.type=="PodScheduled")].reason}`, corev1.PodReasonSchedulerError)
			Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, failed)))
		})

	Specify("A waiting pod is scheduled when a pod without a volume, for which the scheduler has chosen its node, is terminating.",
		Behavior("graceful.binding-pod-makes-room", Observed, KCM, SimulatedNode, Admin, Since("1.35"), Source("kubernetes#134217")), func(ctx SpecContext) {
			workloads.MustBeScheduled(ctx, cluster)
			label := cluster.FreeName("chosen")
			chosen := node(ctx, "chosen", "1", label)
			class := cluster.Create(ctx, fixtures.StorageClass("class"))
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"), WithField(class.GetName(), "spec", "storageClassName"))
			binding := cluster.Create(ctx, fixtures.UnscheduledPod("binding"), waitingFor(label), UsingClaim(claim), Held)
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(
				Matching(claim, HaveJSONPath(`{.metadata.annotations.volume\.kubernetes\.io/selected-node}`, chosen.GetName()))))
			pod := waits(ctx, "waiting", label)

			cluster.Delete(ctx, binding)

			scheduled(ctx, pod)
			Expect(nodes.Of(cluster.Get(ctx, binding))).To(BeEmpty(), "the pod waits for its volume")
		})
})
