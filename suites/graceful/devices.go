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
)

var _ = Describe("Device taints", func() {
	cluster := UseCluster()

	Specify("A NoExecute taint of a device must evict the pods that use the device, with the reason DeletionByDeviceTaintManager.",
		// Allocating a claim takes a permission of the cluster's (update of resourceclaims/binding), which tenants lack.
		Behavior("graceful.device-taint-evicts", Extended, KCM, Admin, Since("1.36"), Source("KEP-5055"),
			Promise("then all pods consuming the ResourceClaim get deleted to evict")), func(ctx SpecContext) {
			uses := func(claim *Object) ObjectOption {
				return WithField([]any{map[string]any{"name": "device", "resourceClaimName": claim.GetName()}}, "spec", "resourceClaims")
			}
			claims := map[string]*Object{}
			for _, name := range []string{"tainted", "other"} {
				claims[name] = cluster.Create(ctx, fixtures.ResourceClaim(name), WithoutFinalizers(resourcev1.Finalizer), requesting)
			}
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), uses(claims["tainted"]), WithGrace(20))
			other := cluster.Create(ctx, fixtures.GhostBoundPod("other"), uses(claims["other"]))
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
})

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
