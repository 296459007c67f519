package cascade

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// unlabeledPolling is how often specs poll for objects without the run's label, which no watch includes.
const unlabeledPolling = 100 * time.Millisecond

var _ = Describe("Deletion of Services", func() {
	cluster := UseCluster()

	Specify("The EndpointSlices of a deleted Service must be deleted.",
		Behavior("cascade.workload.service-endpointslices", Core, GC, KCM,
			Source("concepts/services-networking/endpoint-slices"),
			Promise("This ownership is indicated by an owner reference on each EndpointSlice")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.EndpointSlice())
			service := cluster.Create(ctx, fixtures.Service("service"))
			slice := cluster.AwaitDependents(ctx, service, 1)[0]

			cluster.Delete(ctx, service)

			Eventually(ctx, cluster.History(slice)).Should(HaveObserved(Deleted(slice)))
			cluster.AwaitDependents(ctx, cluster.Create(ctx, fixtures.Service("later")), 1) // the controller handles Services in order
			cluster.AwaitCollector(ctx)
			cluster.AwaitDependents(ctx, service, 1)
		})

	Specify("A Service gets another EndpointSlice if that with its name and ports is terminating.",
		Behavior("cascade.workload.endpointslice-terminating", Observed, KCM, Since("1.25"), Source("pkg/controller/endpointslice/endpointslice_controller.go")),
		func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.EndpointSlice())
			canary := cluster.Create(ctx, fixtures.Service("canary"))
			first := cluster.AwaitDependents(ctx, canary, 1)[0]
			terminating := cluster.Create(ctx, fixtures.EndpointSlice(), Held, ofService(cluster.FreeName("service")))
			cluster.Delete(ctx, terminating)
			cluster.Delete(ctx, first)
			cluster.AwaitDependents(ctx, canary, 2) // the controller knows of both deletes

			service := cluster.Create(ctx, fixtures.Service("service"))

			created := cluster.AwaitDependents(ctx, service, 1)[0]
			Expect(created).NotTo(BeSameObjectAs(terminating))
			Expect(cluster.Get(ctx, terminating)).To(BeTerminating())
		})

	Specify("Endpoints that were deleted and created again while the controller manager was stopped own an EndpointSlice.",
		Behavior("cascade.workload.mirrored-endpointslices", Observed, GC, KCM, Disruptive, StopsControllerManager, Since("1.31"),
			Source("pkg/controller/endpointslicemirroring/reconciler.go")), Serial, func(ctx SpecContext) {
			service := cluster.Create(ctx, fixtures.Service("service"), WithField(nil, "spec", "selector"))
			endpoints := fixtures.Endpoints()
			mirrored := func() *Object {
				GinkgoHelper()
				return cluster.Create(ctx, endpoints, Named(service.GetName()), WithField([]any{map[string]any{
					"addresses": []any{map[string]any{"ip": "192.0.2.7"}}, "ports": []any{map[string]any{"port": int64(80)}},
				}}, "subsets"))
			}
			cluster.Watch(ctx, fixtures.EndpointSlice())
			deleted := mirrored()
			cluster.AwaitDependents(ctx, deleted, 1)
			start := components.Stop(ctx, cluster, components.ControllerManager)
			cluster.Delete(ctx, deleted)
			again := mirrored()

			start(ctx)

			slice := fixtures.EndpointSlice()
			slice.SetNamespace(cluster.Namespace())
			slices := func() ([]*Object, error) { return cluster.List(ctx, slice), nil }
			Eventually(ctx, slices).WithTimeout(cluster.Session().AtLeast(collectorStarts)).Should(
				Awaited(cluster, slices, ContainElement(BeOwnedBy(again))))
		})

	// serving creates a Service and waits for its Endpoints.
	serving := func(ctx SpecContext) (service, endpoints *Object) {
		GinkgoHelper()
		cluster.Watch(ctx, fixtures.Endpoints())
		service = cluster.Create(ctx, fixtures.Service("service"))
		endpoints = fixtures.Endpoints()
		endpoints.SetNamespace(service.GetNamespace())
		endpoints.SetName(service.GetName())
		return service, mustAppear(ctx, cluster, endpoints)
	}

	Specify("The Endpoints of a deleted Service must be deleted, where a controller creates Endpoints.",
		Behavior("cascade.workload.service-endpoints", Extended, KCM, Source("pkg/controller/endpoint/endpoints_controller.go")), func(ctx SpecContext) {
			service, endpoints := serving(ctx)

			cluster.Delete(ctx, service)

			Eventually(ctx, cluster.History(endpoints)).Should(HaveObserved(Deleted(endpoints)))
		})

	Specify("The delete of the Endpoints of a deleted Service must be tried again after it was refused.",
		Behavior("cascade.workload.service-endpoints-retried", Extended, KCM, Hook, Since("1.37"), Source("pkg/controller/endpoint/endpoints_controller.go")),
		func(ctx SpecContext) { // before 1.37 the API server deletes them without a review
			service, endpoints := serving(ctx)
			webhook := webhooks.Validating(ctx, cluster, webhooks.OnResources("endpoints"))
			webhook.Deny(endpoints, "not yet")

			cluster.Delete(ctx, service)

			webhook.AwaitReviews(ctx, endpoints, 2)
			webhook.Allow(endpoints)
			Eventually(ctx, cluster.History(endpoints)).Should(HaveObserved(Deleted(endpoints)))
		})
})

// ofService makes an EndpointSlice one of a Service with this name, which a controller manages.
func ofService(name string) ObjectOption {
	return func(slice *Object) {
		WithLabel(discoveryv1.LabelServiceName, name)(slice)
		WithLabel(discoveryv1.LabelManagedBy, "endpointslice-controller.k8s.io")(slice)
	}
}

// mustAppear waits for an object of a controller that not every cluster has, and skips the spec when it does not appear.
func mustAppear(ctx SpecContext, cluster *Cluster, object *Object) *Object {
	GinkgoHelper()
	appeared := NewGomega(func(message string, _ ...int) {
		if !cluster.Session().Recovers(ctx, message) {
			Skip("no controller makes " + object.GetKind() + ": " + message)
		}
	})
	read := func() (Response, error) { return cluster.TryGet(ctx, object), nil }
	appeared.Eventually(ctx, read).WithPolling(unlabeledPolling).Should(Awaited(cluster, read, HaveStatusCode(http.StatusOK)))
	return cluster.Get(ctx, object)
}

var _ = Describe("Deletion of ServiceAccounts", func() {
	cluster := UseCluster()

	Specify("The Secrets with tokens of a deleted ServiceAccount must be deleted.",
		Behavior("cascade.workload.service-account-secrets", Core, KCM,
			Source("reference/access-authn-authz/service-accounts-admin"),
			Promise("watches for ServiceAccount deletion and deletes all corresponding ServiceAccount token Secrets")), func(ctx SpecContext) {
			account := cluster.Create(ctx, fixtures.ServiceAccount())
			secret := cluster.Create(ctx, fixtures.TokenSecret("token", account.GetName()))
			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Matching(secret, Not(HaveJSONPath("{.data.token}", "")))), "the Secret has a token")

			cluster.Delete(ctx, account)

			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Deleted(secret)))
		})

	Specify("A deleted Secret with a token must be removed from the secrets of its ServiceAccount.",
		Behavior("cascade.workload.secret-reference", Core, KCM,
			Source("reference/access-authn-authz/service-accounts-admin"),
			Promise("watches for Secret deletion and removes a reference from the corresponding ServiceAccount if needed.")), func(ctx SpecContext) {
			account := cluster.Create(ctx, fixtures.ServiceAccount())
			secret := cluster.Create(ctx, fixtures.TokenSecret("token", account.GetName()))
			other := map[string]any{"name": "other"}
			account = cluster.Update(ctx, account, WithField([]any{other, map[string]any{"name": secret.GetName()}}, "secrets"))
			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Matching(secret, Not(HaveJSONPath("{.data.token}", "")))), "the Secret has a token")

			cluster.Delete(ctx, secret)

			Eventually(ctx, cluster.History(account)).Should(HaveObserved(Matching(account, HaveJSONPath("{.secrets[*].name}", "other"))))
		})
})

var _ = Describe("Default objects of a namespace", func() {
	cluster := UseCluster()

	Specify("The ServiceAccount default and the ConfigMap kube-root-ca.crt of a namespace must be recreated after their deletion.",
		Behavior("cascade.workload.namespace-defaults", Core, KCM,
			Source("concepts/security/service-accounts"),
			Promise("If you delete the `default` ServiceAccount object in a namespace, the control plane replaces it with a new "+
				"one.")), func(ctx SpecContext) {
			MustOwnNamespace(cluster, "delete what pods and their owners use")
			account := fixtures.ServiceAccount()
			account.SetName("default")
			for _, object := range []*Object{account, fixtures.ConfigMap("kube-root-ca.crt")} {
				object.SetNamespace(cluster.Namespace())
				read := func() (Response, error) { return cluster.TryGet(ctx, object), nil }
				Eventually(ctx, read).WithPolling(unlabeledPolling).Should(Awaited(cluster, read, HaveStatusCode(http.StatusOK)))
				before := cluster.Get(ctx, object)
				if finalizers := before.GetFinalizers(); len(finalizers) > 0 {
					Skip(fmt.Sprintf("%s %q has the finalizers %q, which Kubernetes does not add", before.GetKind(), before.GetName(), finalizers))
				}

				cluster.Delete(ctx, object, IfUID(before.GetUID()))

				Eventually(ctx, read).WithPolling(unlabeledPolling).
					Should(Awaited(cluster, read, And(HaveStatusCode(http.StatusOK), Not(BeSameObjectAs(before)))))
			}
		})
})
