package finalizers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/aggregation"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

// retriesFailure is the time in which the namespace controller retries twice after failures: the delay grows up to a minute
// (nsControllerRateLimiter in pkg/controller/namespace).
const retriesFailure = 150 * time.Second

// heldNamespace creates a namespace whose content remains, so that the namespace is still there when the controller notices that an
// API is unavailable. The controller starts 5 s after the delete.
func heldNamespace(ctx SpecContext, cluster *Cluster) (namespace, content *Object) {
	GinkgoHelper()
	namespace = cluster.Create(ctx, fixtures.Namespace("ns"))
	return namespace, cluster.In(namespace).Create(ctx, fixtures.ConfigMap("content"), Held)
}

var _ = Describe("Terminating namespaces and broken APIs", func() {
	cluster := UseCluster()

	// While it is broken no namespace of the cluster can be removed, and kubectl prints warnings about the group.
	Specify("An unreachable aggregated API blocks namespace deletion with the condition NamespaceDeletionDiscoveryFailure until its "+
		"APIService is removed.",
		Behavior("finalizers.namespace.broken-discovery", Observed, KCM, Admin, Namespace, Disruptive, Disturbs(KCM, Namespace), Disturbs(Kubectl),
			BreaksDiscovery, Source(namespaceConditions)), Serial,
		func(ctx SpecContext) {
			namespace, content := heldNamespace(ctx, cluster)
			cluster.Delete(ctx, namespace)
			broken := cluster.Create(ctx, fixtures.APIService(cluster.Group(), cluster.Namespace()))

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(namespace, HaveConditionSaying("NamespaceDeletionDiscoveryFailure", cluster.Group()))))
			cluster.Release(ctx, content)
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())

			cluster.Delete(ctx, broken)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
		})

	Specify("A terminating namespace that an unreachable aggregated API blocks must be removed once the API responds again.",
		Behavior("finalizers.namespace.api-comes-back", Core, KCM, Admin, Namespace, Hook, Disruptive, Disturbs(KCM, Namespace), Disturbs(Kubectl),
			BreaksDiscovery, Source(namespaces), Promise(everythingGoes)), Serial,
		func(ctx SpecContext) {
			namespace, content := heldNamespace(ctx, cluster)
			cluster.Delete(ctx, namespace)
			api := aggregation.Register(ctx, cluster)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(namespace, HaveConditionSaying("NamespaceDeletionDiscoveryFailure", cluster.Group()))))
			cluster.Release(ctx, content)

			api.Serve(ctx)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.Get(ctx, api.Service)).To(HaveCondition("Available"))
		})

	Specify("A webhook with failurePolicy Fail, whose Service is in a terminating namespace, blocks the deletion of the namespace until its "+
		"configuration is removed.",
		Behavior("finalizers.namespace.webhook-inside", Observed, KCM, Namespace, Hook,
			Source("k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			service := in.Create(ctx, fixtures.Service("webhook"))
			content := in.Create(ctx, fixtures.ConfigMap("content"))
			webhooks.Validating(ctx, cluster, webhooks.FailurePolicyFail, webhooks.OnResources("configmaps"), webhooks.Behind(service))

			cluster.Delete(ctx, namespace)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(namespace, HaveCondition("NamespaceDeletionContentFailure"))))
			Expect(cluster.Get(ctx, content)).NotTo(BeTerminating())

			for _, configuration := range cluster.List(ctx, fixtures.ValidatingWebhookConfiguration("any")) {
				cluster.Delete(ctx, configuration)
			}
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
		})

	// Other namespaces do not contain these resources, and before 1.32 a collector that lists them pauses only for the duration of this
	// spec.
	Specify("Custom resources that cannot be converted block namespace deletion with the condition "+
		"NamespaceDeletionContentFailure until their definition is repaired.",
		Behavior("finalizers.namespace.broken-conversion", Observed, KCM, Namespace, CRD, Disruptive, Source("kubernetes#118357")),
		func(ctx SpecContext) {
			group := cluster.Group()
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(group, "v2"))
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			thing := cluster.In(namespace).Create(ctx, fixtures.CustomResource(group, "thing"))
			cluster.Delete(ctx, namespace) // the controller starts 5 s later
			cluster.Unwatch(ctx, thing)    // a change of the definition ends the watches of its kind
			cluster.Update(ctx, definition, definitions.UnreachableConversion)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(
				Matching(namespace, HaveConditionSaying("NamespaceDeletionContentFailure", group))))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())
			Expect(cluster.Get(ctx, thing)).To(BeUnchangedSince(thing))

			cluster.Update(ctx, definition, definitions.NoConversion)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, thing)).To(BeGone())
		})
})
