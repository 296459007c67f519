package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
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
