package operator

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/controllers"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// Pages about children, the content of namespaces, and the instances of definitions.
const (
	ownersPage      = "concepts/overview/working-with-objects/owners-dependents"
	namespacesPage  = "tasks/administer-cluster/namespaces"
	definitionsPage = "tasks/extend-kubernetes/custom-resources/custom-resource-definitions"
)

// definitionPolling is the interval for checking whether a definition is gone: it does not carry the run's label, so the run's watches do
// not select it.
const definitionPolling = 100 * time.Millisecond

var _ = Describe("Children of managed objects", func() {
	cluster := UseCluster()

	Specify("The children that a controller creates must have owner references that the garbage collector can use, or "+
		"must be removed before their parent.",
		Behavior("operator.children-removed", Extended, AnyResource, Controller,
			Source(ownersPage),
			Promise("Kubernetes sets the value of this field automatically for objects that are dependents of other objects")), func(ctx SpecContext) {
			children := controllers.WatchChildren(ctx, cluster)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			made := mustHave(children.AwaitIdle(ctx, object))

			var unowned []*Object
			for _, child := range made {
				now := cluster.TryGet(ctx, child)
				Expect(now).To(Or(HaveStatusCode(http.StatusOK), BeGone()))
				switch {
				case now.Err != nil: // the controller has replaced it
				case len(now.Object.GetOwnerReferences()) == 0:
					unowned = append(unowned, child)
				default:
					Expect(now).To(controllers.BeCollectableWith(cluster, object))
				}
			}
			cluster.Delete(ctx, object, Background)
			AwaitDeleted(ctx, cluster, object)
			for _, child := range unowned {
				Expect(cluster.TryGet(ctx, child)).To(BeGone(), "a child without an owner reference is removed before its parent")
			}
		})
})

var _ = Describe("Namespaces of managed objects", func() {
	cluster := UseCluster()

	Specify("Namespace deletion must complete when a controller manages objects in the namespace, and must remove these objects.",
		Behavior("operator.namespace-deletion", Extended, AnyResource, Controller, KCM, Namespace,
			Source(namespacesPage), Promise("This deletes _everything_ under the namespace!")), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			children := controllers.WatchChildren(ctx, in)
			object := in.Create(ctx, fixtures.ConfigMap("object"))
			children.AwaitIdle(ctx, object)

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(namespace)).WithTimeout(cluster.Session().AtLeast(NamespaceDeletion)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})
})

var _ = Describe("CustomResourceDefinitions of managed objects", Serial, func() {
	cluster := UseCluster()

	Specify("CustomResourceDefinition deletion must complete when a controller manages the custom resources, and must "+
		"remove these custom resources.",
		Behavior("operator.crd-deletion", Extended, AnyResource, Controller, CRD, Disruptive, OwnCluster,
			Source(definitionsPage),
			Promise("When you delete a CustomResourceDefinition, the server will uninstall the RESTful API endpoint and delete all "+
				"custom objects stored in it.")), func(ctx SpecContext) {
			children := controllers.WatchChildren(ctx, cluster)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			children.AwaitIdle(ctx, object)

			definition := definitions.Delete(ctx, cluster, object)

			Eventually(ctx, cluster.History(object)).Should(HaveObserved(Deleted(object)))
			Eventually(ctx, cluster.TryGet).WithArguments(ctx, definition).WithPolling(definitionPolling).Should(
				Or(BeGone(), Not(BeSameObjectAs(definition))), "the CustomResourceDefinition is removed")
		})
})

// mustHave skips the spec when a controller has created nothing for an object.
func mustHave(children []*Object) []*Object {
	GinkgoHelper()
	if len(children) == 0 {
		Skip("its controller makes nothing in the object's namespace that names it in an owner reference, or has its name in its own, in a label or in an annotation")
	}
	return children
}
