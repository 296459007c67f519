package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Device taints", func() {
	cluster := UseCluster()

	Specify("A NoExecute taint of a device must evict the pods that use the device, with the reason DeletionByDeviceTaintManager.",
		// Allocating a claim takes a permission of the cluster's (update of resourceclaims/binding), which tenants lack.
		Behavior("graceful.device-taint-evicts", Extended, KCM, Admin, Since("1.36"), Source("KEP-5055"),
			Promise("then all pods consuming the ResourceClaim get deleted to evict")), func(ctx SpecContext) {
			claims := map[string]*Object{}
			for _, name := range []string{"tainted", "other"} {
				claims[name] = cluster.Create(ctx, fixtures.ResourceClaim(name), WithoutFinalizers(resourcev1.Finalizer), requesting)
			}
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), usesDevice(claims["tainted"]), WithGrace(20))
			other := cluster.Create(ctx, fixtures.GhostBoundPod("other"), usesDevice(claims["other"]))
			slice := cluster.Create(ctx, fixtures.ResourceSlice("slice", nodes.Of(pod)))
			allocate(ctx, cluster, claims["tainted"], slice, "tainted", pod)
			allocate(ctx, cluster, claims["other"], slice, "other", other)

			slice = cluster.Update(ctx, slice, taintingDevice("tainted"))
			if !hasTaint(slice) {
				Skip("the server does not store taints of devices (DRADeviceTaints)")
			}

			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Matching(pod, HaveConditionSaying(string(corev1.DisruptionTarget), "DeletionByDeviceTaintManager")), Terminating(pod)))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
			Expect(cluster.Get(ctx, other)).NotTo(BeTerminating())
		})

	// served creates a node with devices, and returns the label of the pods that wait for it, and a claim of one of its devices.
	served := func(ctx SpecContext, request map[string]any, options ...ObjectOption) (label string, claim, slice *Object) {
		GinkgoHelper()
		workloads.MustBeScheduled(ctx, cluster)
		label = cluster.FreeName("devices")
		node := cluster.Create(ctx, fixtures.Node("devices"), withRoom("9", label))
		class := cluster.Create(ctx, fixtures.DeviceClass("class"))
		slice = cluster.Create(ctx, fixtures.ResourceSlice("slice", node.GetName()), options...)
		request["deviceClassName"] = class.GetName()
		claim = cluster.Create(ctx, fixtures.ResourceClaim("claim"), WithoutFinalizers(resourcev1.Finalizer),
			WithField([]any{map[string]any{"name": "device", "exactly": request}}, "spec", "devices", "requests"))
		return label, claim, slice
	}
	// scheduled creates a pod that uses a claim, and waits until it is scheduled.
	scheduled := func(ctx SpecContext, name, label string, claim *Object) *Object {
		GinkgoHelper()
		pod := cluster.Create(ctx, fixtures.UnscheduledPod(name), waitingFor(label), usesDevice(claim))
		Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Matching(pod, HaveCondition(string(corev1.PodScheduled)))))
		return pod
	}

	Specify("A pod whose ResourceClaim tolerates the NoExecute taint of its device is not evicted.",
		Behavior("graceful.device-taint-tolerated", Observed, KCM, SimulatedNode, Admin, Since("1.36"), Source("KEP-5055")), func(ctx SpecContext) {
			label, claim, slice := served(ctx, map[string]any{"tolerations": []any{map[string]any{"operator": "Exists", "effect": "NoExecute"}}},
				taintingDevice("tainted"), taintingDevice("other"))
			if !hasTaint(slice) {
				Skip("the server does not store taints of devices (DRADeviceTaints)")
			}
			pod := scheduled(ctx, "pod", label, claim)
			evictedClaim := cluster.Create(ctx, fixtures.ResourceClaim("evicted"), WithoutFinalizers(resourcev1.Finalizer), requesting)
			evicted := cluster.Create(ctx, fixtures.GhostBoundPod("evicted"), usesDevice(evictedClaim))

			allocate(ctx, cluster, evictedClaim, slice, "other", evicted)

			Eventually(ctx, cluster.History(evicted)).Should(HaveObserved(Terminating(evicted)))
			cluster.Settle(ctx)
			Expect(cluster.Get(ctx, pod)).NotTo(BeTerminating())
		})

	Specify("A ResourceClaim that is allocated for a second pod, while its finalizer is removed after the first pod, has the finalizer.",
		Behavior("graceful.device-finalizer-remains", Observed, KCM, SimulatedNode, Admin, Hook, Since("1.36"), Source("kubernetes#124931")), func(ctx SpecContext) {
			label, claim, _ := served(ctx, map[string]any{})
			first := scheduled(ctx, "first", label, claim)
			cluster.Update(ctx, claim, WithLabel("once", "allocated"))
			writes := webhooks.OnOperations(registrationv1.Update)
			removal := webhooks.Validating(ctx, cluster, writes, webhooks.OnResources("resourceclaims"))
			allocation := webhooks.Validating(ctx, cluster, writes, webhooks.OnResources("resourceclaims/status"))
			removal.Hold(claim)
			workloads.SetPhase(ctx, cluster, first, "Succeeded")
			removal.AwaitReview(ctx, claim) // the claim is deallocated
			allocation.Hold(claim)
			second := cluster.Create(ctx, fixtures.UnscheduledPod("second"), waitingFor(label), usesDevice(claim))
			allocation.AwaitReviews(ctx, claim, 2)

			removal.Allow(claim)
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(
				Matching(claim, And(HaveJSONPath("{.metadata.labels.once}", "allocated"), Not(HaveFinalizer(resourcev1.Finalizer))))))
			allocation.Allow(claim)

			Eventually(ctx, cluster.History(second)).Should(HaveObserved(Matching(second, HaveCondition(string(corev1.PodScheduled)))))
			Expect(cluster.Get(ctx, claim)).To(HaveFinalizers(resourcev1.Finalizer))
		})

	Specify("A deleted pod whose ResourceClaim could never be prepared on its node must be removed.",
		Behavior("graceful.node.claim-never-prepared", Extended, Node, Admin, Since("1.34"), Source(podLifecycle), Promise(deletesComplete)), func(ctx SpecContext) {
			claim := cluster.Create(ctx, fixtures.ResourceClaim("claim"), WithoutFinalizers(resourcev1.Finalizer), requesting)
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), usesDevice(claim))
			allocate(ctx, cluster, claim, fixtures.ResourceSlice("slice", "none"), "tainted", pod)
			workloads.AwaitStart(ctx, cluster, pod, nodes.HaveStartTime())
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(cluster.Get(ctx, pod)))

			cluster.Delete(ctx, pod)

			workloads.AwaitDeletion(ctx, cluster, pod, HavePhase(corev1.PodFailed))
			Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, workloads.HaveStarted("main"))))
		})
})

// usesDevice makes a pod use a claim.
func usesDevice(claim *Object) ObjectOption {
	return WithField([]any{map[string]any{"name": "device", "resourceClaimName": claim.GetName()}}, "spec", "resourceClaims")
}

// requesting makes a claim request a device.
func requesting(claim *Object) {
	request := map[string]any{"name": "device", "exactly": map[string]any{"deviceClassName": "deletion-conformance-serves-nobody"}}
	WithField([]any{request}, "spec", "devices", "requests")(claim)
}

// allocate writes the allocation of a device to a claim, as the scheduler does, and reserves the claim for a pod.
func allocate(ctx SpecContext, cluster *Cluster, claim, slice *Object, device string, pod *Object) {
	GinkgoHelper()
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(slice.Object, path...)
		return value
	}
	allocated := func(claim *Object) {
		WithField([]any{map[string]any{
			"request": "device", "driver": text("spec", "driver"), "pool": text("spec", "pool", "name"), "device": device,
		}}, "status", "allocation", "devices", "results")(claim)
		WithField([]any{map[string]any{
			"resource": "pods", "name": pod.GetName(), "uid": string(pod.GetUID()),
		}}, "status", "reservedFor")(claim)
	}
	Expect(cluster.TryUpdate(ctx, claim, allocated, "status")).To(HaveStatusCode(http.StatusOK))
}

// taintingDevice adds a NoExecute taint to a device of a slice.
func taintingDevice(name string) ObjectOption {
	return func(slice *Object) {
		devices, _, _ := unstructured.NestedSlice(slice.Object, "spec", "devices")
		for _, device := range devices {
			if device := device.(map[string]any); device["name"] == name {
				device["taints"] = []any{map[string]any{"key": Domain + "/evicts", "effect": string(resourcev1.DeviceTaintEffectNoExecute)}}
			}
		}
		WithField(devices, "spec", "devices")(slice)
	}
}

// hasTaint reports whether a device of a slice has a taint.
func hasTaint(slice *Object) bool {
	devices, _, _ := unstructured.NestedSlice(slice.Object, "spec", "devices")
	for _, device := range devices {
		if taints, ok := device.(map[string]any)["taints"].([]any); ok && len(taints) > 0 {
			return true
		}
	}
	return false
}
