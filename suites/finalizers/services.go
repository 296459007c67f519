package finalizers

import (
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// addressOf returns the clusterIP of a Service.
func addressOf(service *Object) string {
	address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return address
}

// withAddress requests a clusterIP.
func withAddress(address string) ObjectOption { return WithField(address, "spec", "clusterIP") }

// nodePortOf returns the nodePort of a Service's only port.
func nodePortOf(service *Object) int64 {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	port, _ := ports[0].(map[string]any)["nodePort"].(int64)
	return port
}

// withNodePort makes a Service of type NodePort with this port; 0 for any.
func withNodePort(port int64) ObjectOption {
	return func(service *Object) {
		WithField("NodePort", "spec", "type")(service)
		WithField([]any{map[string]any{"port": int64(80), "nodePort": port}}, "spec", "ports")(service)
	}
}

var _ = Describe("Terminating Services", func() {
	cluster := UseCluster()

	Specify("A terminating Service keeps its clusterIP and nodePort until its removal, after which another Service can "+
		"use them immediately.",
		Behavior("finalizers.service-keeps-address", Observed, Source("kubernetes#87603")), func(ctx SpecContext) {
			mustBeReusable(func(try string) Response {
				held := cluster.Create(ctx, fixtures.Service("held-"+try), withNodePort(0), Held)
				address, port := withAddress(addressOf(held)), withNodePort(nodePortOf(held))

				cluster.Delete(ctx, held)
				Expect(cluster.TryCreate(ctx, fixtures.Service("same-address-"+try), address)).To(HaveStatusCode(http.StatusUnprocessableEntity))
				Expect(cluster.TryCreate(ctx, fixtures.Service("same-port-"+try), port)).To(HaveStatusCode(http.StatusUnprocessableEntity))
				terminating := cluster.Get(ctx, held)
				Expect(addressOf(terminating)).To(Equal(addressOf(held)), "the clusterIP is unchanged")
				Expect(nodePortOf(terminating)).To(Equal(nodePortOf(held)), "the nodePort is unchanged")

				cluster.Release(ctx, held)
				return cluster.TryCreate(ctx, fixtures.Service("next-"+try), address, port)
			})
		})
})

// addressTries is how often it is checked whether an address is free.
const addressTries = 3

// mustBeReusable expects a Service to get the address or port of a deleted one. It has several attempts, because another client may get it
// meanwhile: with a probability of 1 in 250 if Services share a range of that many addresses.
func mustBeReusable(next func(try string) Response) {
	GinkgoHelper()
	var response Response
	for try := range addressTries {
		if response = next(strconv.Itoa(try)); response.Err == nil {
			break
		}
	}
	Expect(response).To(HaveStatusCode(http.StatusCreated))
}

var _ = Describe("Finalizer removal through the status subresource", func() {
	cluster := UseCluster()

	Specify("Removing the last finalizer of a terminating Service or pod through the status subresource removes the "+
		"object and frees the clusterIP.",
		Behavior("finalizers.removal-through-status", Observed, Source(store)), func(ctx SpecContext) {
			ends := func(manifest *Object) *Object {
				object := cluster.Create(ctx, manifest, Held)
				cluster.Delete(ctx, object)
				Expect(cluster.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(Hold)))

				cluster.Patch(ctx, object, types.MergePatchType, withoutFinalizers, "status")
				Expect(cluster.TryGet(ctx, object)).To(BeGone())
				return object
			}

			ends(fixtures.UnscheduledPod("pod"))
			mustBeReusable(func(try string) Response {
				service := ends(fixtures.Service("service-" + try))
				return cluster.TryCreate(ctx, fixtures.Service("next-"+try), withAddress(addressOf(service)))
			})
		})
})

var _ = Describe("Immutable ConfigMaps and Secrets", func() {
	cluster := UseCluster()

	Specify("An immutable ConfigMap or Secret must be deletable, and its finalizers must be removable.",
		Behavior("finalizers.immutable-objects", Core, Source("concepts/configuration/configmap"),
			Promise("You can only delete and recreate the ConfigMap.")), func(ctx SpecContext) {
			immutable := WithField(true, "immutable")
			for _, manifest := range []func(string) *Object{fixtures.ConfigMap, fixtures.Secret} {
				free := cluster.Create(ctx, manifest("free"), immutable)
				held := cluster.Create(ctx, manifest("held"), immutable, Held)

				cluster.Delete(ctx, free)
				cluster.Delete(ctx, held)
				Expect(cluster.TryGet(ctx, free)).To(BeGone())
				Expect(cluster.Get(ctx, held)).To(And(BeTerminating(), HaveFinalizers(Hold)))

				cluster.Release(ctx, held)
				Expect(cluster.TryGet(ctx, held)).To(BeGone())
			}
		})
})
