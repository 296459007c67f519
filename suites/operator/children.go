package operator

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// Where it is said what becomes of children, and of what is in a namespace.
const (
	ownersPage     = "concepts/overview/working-with-objects/owners-dependents"
	namespacesPage = "tasks/administer-cluster/namespaces"
)

var _ = Describe("what a controller makes for an object", func() {
	cluster := UseCluster()

	Specify("it carries an owner reference that the garbage collector can use, or is gone before the object",
		Behavior("operator.children-go-too", Extended, AnyResource, Controller, Source(ownersPage)), func(ctx SpecContext) {
			children := cluster.WatchChildren(ctx)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			made := mustHave(children.AwaitRest(ctx, object))

			var unowned []*Object
			for _, child := range made {
				switch now := cluster.TryGet(ctx, child); {
				case now.Err != nil:
				case len(now.Object.GetOwnerReferences()) == 0:
					unowned = append(unowned, child)
				default:
					Expect(now).To(cluster.BeCollectableWith(object))
				}
			}
			cluster.Delete(ctx, object, Background)
			cluster.AwaitDeleted(ctx, object)
			for _, child := range unowned {
				Expect(cluster.TryGet(ctx, child)).To(BeGone(), "it has no owner, and outlives the object that it was made for")
			}
		})

	Specify("a namespace with such objects goes",
		Behavior("operator.namespace-goes", Extended, AnyResource, Controller, KCM, Admin, Source(namespacesPage)), func(ctx SpecContext) {
			namespace := cluster.Create(ctx, fixtures.Namespace("ns"))
			in := cluster.In(namespace)
			children := in.WatchChildren(ctx)
			object := in.Create(ctx, fixtures.ConfigMap("object"))
			children.AwaitRest(ctx, object)

			cluster.Delete(ctx, namespace)

			Eventually(ctx, cluster.History(namespace)).Should(HaveObserved(Deleted(namespace)))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})
})

// mustHave skips the spec where a controller has made nothing for an object.
func mustHave(children []*Object) []*Object {
	GinkgoHelper()
	if len(children) == 0 {
		Skip("its controller makes nothing in the object's namespace that names it in an owner reference, or has its name in its own, in a label or in an annotation")
	}
	return children
}
