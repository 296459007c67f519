package graceful

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/events"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// taintsAndTolerations is the page of the documentation on taints.
const taintsAndTolerations = "concepts/scheduling-eviction/taint-and-toleration"

// tainted adds a NoExecute taint to a node.
func tainted(key string) ObjectOption { return taintedWith(key, corev1.TaintEffectNoExecute) }

// taintedWith adds a taint to a node.
func taintedWith(key string, effect corev1.TaintEffect) ObjectOption {
	return func(node *Object) {
		taint := map[string]any{"key": key, "effect": string(effect)}
		WithField(append(taintsOf(node), taint), "spec", "taints")(node)
	}
}

// untainted removes a taint from a node.
func untainted(key string) ObjectOption {
	return func(node *Object) {
		WithField(slices.DeleteFunc(taintsOf(node), func(taint any) bool { return taint.(map[string]any)["key"] == key }), "spec", "taints")(node)
	}
}

func taintsOf(node *Object) []any {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	return taints
}

var _ = Describe("NoExecute taints", func() {
	cluster := UseCluster()

	const key = Domain + "/evicts"
	// tolerating makes a pod tolerate the taint: for some seconds, or forever.
	tolerating := func(seconds ...int64) ObjectOption {
		toleration := map[string]any{"key": key, "operator": "Exists"}
		if len(seconds) > 0 {
			toleration["tolerationSeconds"], toleration["effect"] = seconds[0], string(corev1.TaintEffectNoExecute)
		}
		return WithField([]any{toleration}, "spec", "tolerations")
	}

	// Of the pods on the node whose taint is removed, the spec checks one whose tolerationSeconds had not nearly expired.
	seconds := []int64{5, 10, 20, 40, 80, 160}

	Specify("A NoExecute taint must evict pods that do not tolerate it, and must evict tolerating pods when their "+
		"tolerationSeconds expire unless the taint is removed first.",
		Behavior("graceful.taint-evicts", Core, KCM, SimulatedNode, Source(taintsAndTolerations),
			Promise("Pods that do not tolerate the taint are evicted immediately ... with a specified "+
				"`tolerationSeconds` remain bound for the specified amount of time")), func(ctx SpecContext) {
			kept, lifted := cluster.Create(ctx, fixtures.Node("kept")), cluster.Create(ctx, fixtures.Node("lifted"))
			on := func(node *Object, name string, options ...ObjectOption) *Object {
				return cluster.Create(ctx, fixtures.GhostBoundPod(name), append(options, OnNode(node.GetName()))...)
			}
			tolerant, patient := on(kept, "tolerant", tolerating()), on(kept, "patient", tolerating(seconds[0]))
			intolerant, spared := on(lifted, "intolerant"), make([]*Object, len(seconds))
			for i := range seconds {
				spared[i] = on(lifted, fmt.Sprintf("spared-%d", i), tolerating(seconds[i]))
			}
			before := cluster.Now(ctx)
			cluster.Update(ctx, kept, tainted(key))

			start := time.Now()
			cluster.Update(ctx, lifted, tainted(key))
			Eventually(ctx, cluster.History(intolerant)).Should(HaveObserved(Matching(intolerant, And(BeTerminating(), HaveGracePeriod(30)))))
			cluster.Update(ctx, lifted, untainted(key))
			inTime := slices.IndexFunc(seconds, func(s int64) bool { return time.Duration(s-2)*time.Second > 2*time.Since(start) })
			if inTime < 0 {
				cluster.Errored(fmt.Sprintf("the taint could only be removed after %s, when tolerationSeconds had nearly expired", time.Since(start)))
			}
			cluster.Outlast(ctx, cluster.Now(ctx).Add(time.Duration(seconds[inTime])*time.Second))

			Expect(cluster.Get(ctx, spared[inTime])).To(BeUnchangedSince(spared[inTime]))
			Expect(cluster.Get(ctx, tolerant)).To(BeUnchangedSince(tolerant))
			Eventually(ctx, cluster.History(patient)).Should(HaveObserved(Matching(patient, And(BeTerminating(), HaveGracePeriod(30)))))
			evictedAt := cluster.Get(ctx, patient).GetDeletionTimestamp().Add(-30 * time.Second)
			Expect(evictedAt).To(BeTemporally(">=", before.Add(time.Duration(seconds[0])*time.Second)), "the pod is not evicted before tolerationSeconds expire")
		})

	Specify("A pod that is evicted for a NoExecute taint must have the condition DisruptionTarget with the reason DeletionByTaintManager "+
		"and keep its grace period.",
		Behavior("graceful.taint-reason", Core, KCM, SimulatedNode, Source("KEP-3329"),
			Promise("DeletionByTaintManager (Pod evicted by kube-controller-manager due to taints)")), func(ctx SpecContext) {
			node := cluster.Create(ctx, fixtures.Node("node"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()), WithGrace(20))

			cluster.Update(ctx, node, tainted(key))

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Matching(pod, And(HaveConditionSaying(string(corev1.DisruptionTarget), "DeletionByTaintManager"), Not(BeTerminating()))), Terminating(pod)))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
		})

	Specify("An eviction for a NoExecute taint is reported in an Event TaintManagerEviction with the apiVersion, kind and name of the pod.",
		Behavior("graceful.taint-event", Observed, KCM, SimulatedNode, Since("1.29"), Source("pkg/controller/tainteviction/taint_eviction.go")), func(ctx SpecContext) {
			node := cluster.Create(ctx, fixtures.Node("node"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()))

			cluster.Update(ctx, node, tainted(key))

			events.AwaitByName(ctx, cluster, pod, "TaintManagerEviction")
		})

	Specify("An eviction for a NoExecute taint deletes the pod that has taken the name of the evicted pod, even on a node without the taint.",
		Behavior("graceful.taint-evicts-by-name", Observed, KCM, SimulatedNode, Hook, Source("kubernetes#141568")), func(ctx SpecContext) {
			node, sound := cluster.Create(ctx, fixtures.Node("node")), cluster.Create(ctx, fixtures.Node("sound"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()))
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnOperations(registrationv1.Delete))
			webhook.Hold(pod)
			cluster.Update(ctx, node, tainted(key))
			webhook.AwaitReview(ctx, pod)

			cluster.Delete(ctx, pod, Grace(0))
			namesake := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(sound.GetName()))
			webhook.Allow(pod)

			Eventually(ctx, cluster.History(namesake)).Should(HaveObserved(Terminating(namesake)))
		})

	Specify("The taints NoSchedule and PreferNoSchedule must not evict the pods of the node.",
		Behavior("graceful.taint-no-schedule", Core, KCM, SimulatedNode, Source(taintsAndTolerations),
			Promise("Pods currently running on the node are **not** evicted.")), func(ctx SpecContext) {
			node := cluster.Create(ctx, fixtures.Node("node"))
			on := func(name string, options ...ObjectOption) *Object {
				return cluster.Create(ctx, fixtures.GhostBoundPod(name), append(options, OnNode(node.GetName()))...)
			}
			pod, intolerant := on("pod", tolerating()), on("intolerant")

			cluster.Update(ctx, node, taintedWith(Domain+"/refuses", corev1.TaintEffectNoSchedule), taintedWith(Domain+"/avoids", corev1.TaintEffectPreferNoSchedule))
			cluster.Update(ctx, node, tainted(key)) // the controller handles the taints of a node together

			Eventually(ctx, cluster.History(intolerant)).Should(HaveObserved(Terminating(intolerant)))
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
		})
})

var _ = Describe("Default tolerations", func() {
	cluster := UseCluster()

	// seconds matches the tolerationSeconds of a pod for a taint; none if empty.
	seconds := func(taint, value string) OmegaMatcher {
		return HaveJSONPath(`{.spec.tolerations[?(@.key=="`+taint+`")].tolerationSeconds}`, value)
	}
	const notReady, unreachable = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable

	Specify("A pod without tolerations of the taints not-ready and unreachable must get both with tolerationSeconds, and a pod must keep its own.",
		Behavior("graceful.default-tolerations", Extended, Source(taintsAndTolerations),
			Promise("Kubernetes automatically adds a toleration for `node.kubernetes.io/not-ready` and `node.kubernetes.io/unreachable` ... "+
				"unless you, or a controller, set those tolerations explicitly.")), func(ctx SpecContext) {
			created := func(tolerations ...any) *Object {
				return cluster.DryRun().Create(ctx, fixtures.UnscheduledPod("pod"), WithField(tolerations, "spec", "tolerations"))
			}
			silent := created()
			if off, err := And(seconds(notReady, ""), seconds(unreachable, "")).Match(silent); off && err == nil {
				Skip("pods get no tolerations: the admission plugin DefaultTolerationSeconds is off")
			}

			Expect(silent).NotTo(Or(seconds(notReady, ""), seconds(unreachable, "")))
			for own, other := range map[string]string{notReady: unreachable, unreachable: notReady} {
				pod := created(map[string]any{"key": own, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(7)})
				Expect(pod).To(And(seconds(own, "7"), Not(seconds(other, ""))))
			}
		})
})
