package finalizers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// retriesFailure is within which time the namespace controller tries again after a failure: it waits as long as it has
// failed, and a minute at most (nsControllerRateLimiter in pkg/controller/namespace).
const retriesFailure = 90 * time.Second

var _ = Describe("Terminating namespaces and broken APIs", func() {
	cluster := UseCluster()

	// While it is broken no namespace of the cluster can be removed, and kubectl prints warnings about the group.
	Specify("An unreachable aggregated API must block namespace deletion with the condition "+
		"NamespaceDeletionDiscoveryFailure until its APIService is removed.",
		Behavior("finalizers.namespace.broken-discovery", Core, KCM, Admin, Namespace, Disruptive, Disturbs(KCM, Namespace), Disturbs(Kubectl),
			Source(namespaceReference),
			Promise("NamespaceDeletionDiscoveryFailure contains information about namespace deleter errors during resource discovery.")), Serial,
		func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			cluster.Delete(ctx, namespace) // the controller begins 5 s later
			broken := cluster.Create(ctx, fixtures.APIService(cluster.Group(), cluster.Namespace()))

			Eventually(ctx, cluster.History(namespace)).Should(HaveObserved(
				Matching(namespace, HaveCondition("NamespaceDeletionDiscoveryFailure"))))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())

			cluster.Delete(ctx, broken)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
		})

	// Other namespaces have none of these, and before 1.32 a collector that meets them pauses for no longer than this takes.
	Specify("Custom resources that cannot be converted block namespace deletion with the condition "+
		"NamespaceDeletionContentFailure until their definition is repaired.",
		Behavior("finalizers.namespace.broken-conversion", Observed, KCM, Namespace, CRD, Disruptive, Source("kubernetes#118357")),
		func(ctx SpecContext) {
			group := cluster.Group()
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(group, "v2"))
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			thing := cluster.In(namespace).Create(ctx, fixtures.CustomResource(group, "thing"))
			cluster.Delete(ctx, namespace) // the controller begins 5 s later
			cluster.Unwatch(ctx, thing)    // a definition that changes ends the watches of what it defines
			cluster.Update(ctx, definition, definitions.UnreachableConversion)

			Eventually(ctx, cluster.History(namespace)).Should(HaveObserved(
				Matching(namespace, HaveConditionSaying("NamespaceDeletionContentFailure", group))))
			awaitNamespaceController(ctx, cluster, namespace)
			Expect(cluster.Get(ctx, namespace)).To(terminatingNamespace())
			Expect(cluster.Get(ctx, thing)).To(BeUnchangedSince(thing))

			cluster.Update(ctx, definition, definitions.NoConversion)
			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.AtLeast(retriesFailure)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, thing)).To(BeGone())
		})
})
