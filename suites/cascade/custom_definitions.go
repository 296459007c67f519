package cascade

import (
	"net/http"
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

const (
	// customResources is the page of the documentation on definitions and their instances.
	customResources = "tasks/extend-kubernetes/custom-resources/custom-resource-definitions"
	// versionedResources is the page of the documentation on kinds with several versions.
	versionedResources = "tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning"
	// uninstalls is a sentence of customResources.
	uninstalls = "When you delete a CustomResourceDefinition, the server will uninstall the RESTful API endpoint and delete all custom " +
		"objects stored in it."
	// customDiscovery is the source of the discovery of custom kinds.
	customDiscovery = "apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go"
)

// definitionPolling is the interval for checking whether the API server has processed a change of a definition.
const definitionPolling = 100 * time.Millisecond

var _ = Describe("Deletion of CustomResourceDefinitions", func() {
	cluster := UseCluster()

	// beRefused matches the refusal to create an instance: 405 through 1.33, 403 from 1.35, or 404 where the endpoint is gone.
	beRefused := Or(HaveStatusCode(http.StatusForbidden), HaveStatusCode(http.StatusMethodNotAllowed), HaveStatusCode(http.StatusNotFound))

	// terminating creates a definition and held instances, deletes it, and waits until the server has processed that.
	terminating := func(ctx SpecContext, names ...string) (definition *Object, instances []*Object) {
		GinkgoHelper()
		definition = definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
		for _, name := range names {
			instances = append(instances, cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), name), Held))
		}
		cluster.Delete(ctx, definition)
		late := fixtures.CustomResource(cluster.Group(), "late")
		Eventually(ctx, func() Response { return cluster.DryRun().TryCreate(ctx, late) }).
			WithTimeout(cluster.Session().AtLeast(definitions.Finalization)).WithPolling(definitionPolling).Should(beRefused)
		return definition, instances
	}

	Specify("Deleting a CustomResourceDefinition must delete its custom resources, and the terminating definition must "+
		"have the condition Terminating.",
		Behavior("cascade.custom.crd-deletes-instances", Core, CRD, Source(customResources), Promise(uninstalls)), func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
			one := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "one"))
			two := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "two"))

			cluster.Delete(ctx, definition)

			Eventually(ctx, cluster.History(definition)).WithTimeout(cluster.Session().AtLeast(definitions.Finalization)).Should(HaveObserved(
				Matching(definition, And(BeTerminating(), HaveCondition("Terminating"))), Deleted(definition)))
			Eventually(ctx, cluster.History(one, two)).Should(HaveObserved(Each(Deleted, one, two)))
		})

	Specify("A finalizer on a custom resource must block the removal of its terminating CustomResourceDefinition, for "+
		"which creating custom resources must be refused.",
		Behavior("cascade.custom.crd-waits-for-finalizers", Core, CRD,
			Source(customResources), Promise("Custom objects support finalizers similar to built-in objects.")), func(ctx SpecContext) {
			definition, instances := terminating(ctx, "held")

			Expect(cluster.TryCreate(ctx, fixtures.CustomResource(cluster.Group(), "late"))).To(beRefused)
			Eventually(ctx, cluster.History(instances[0])).WithTimeout(cluster.Session().AtLeast(definitions.Finalization)).Should(HaveObserved(Terminating(instances[0])))
			cluster.Tick(ctx) // an instance without finalizers would be gone within milliseconds
			Expect(cluster.Get(ctx, instances[0])).To(And(BeTerminating(), HaveFinalizers(Hold)))
			Expect(cluster.Get(ctx, definition)).To(And(BeTerminating(), HaveCondition("Terminating")))

			cluster.Release(ctx, instances[0])
			Expect(cluster.TryGet(ctx, instances[0])).To(BeGone())
			definitions.AwaitRemoval(ctx, cluster, definition)
		})

	Specify("A deletecollection of custom resources must delete exactly the objects that match a field selector for one of their selectableFields.",
		Behavior("cascade.custom.collection-by-selectable-field", Extended, CRD, Since("1.32"), Source("KEP-4358")), func(ctx SpecContext) {
			definition := fixtures.CustomResourceDefinition(cluster.Group())
			version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.color"}}
			WithField("string", "schema", "openAPIV3Schema", "properties", "spec", "properties", "color", "type")(&Object{Object: version})
			definitions.Create(ctx, cluster, definition)
			colored := func(name, color string) *Object {
				return cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), name), WithField(color, "spec", "color"))
			}
			blue, green := colored("blue", "blue"), colored("green", "green")

			cluster.DeleteCollection(ctx, blue, WithFieldSelector("spec.color=blue"))

			Expect(cluster.List(ctx, blue)).To(ConsistOf(BeUnchangedSince(green)))
		})

	Specify("A server-side apply that would create a custom resource of a terminating CustomResourceDefinition is refused with 403.",
		Behavior("cascade.custom.crd-apply-refused", Observed, CRD, Since("1.35"),
			Source("apiextensions-apiserver/test/integration: TestApplyCRDuringCRDFinalization")),
		func(ctx SpecContext) {
			_, instances := terminating(ctx, "held")
			late := fixtures.CustomResource(cluster.Group(), "late")
			late.SetNamespace(cluster.Namespace())

			created := cluster.TryApply(ctx, late, Domain, map[string]any{"name": late.GetName()})
			Expect(created).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.TryGet(ctx, late)).To(BeGone())

			note := map[string]any{"annotations": map[string]any{Domain + "/note": "applied"}}
			Expect(cluster.TryApply(ctx, instances[0], Domain, note)).To(HaveStatusCode(http.StatusOK), "an existing custom resource accepts an apply")
		})

	Specify("Discovery omits the verb create for a terminating CustomResourceDefinition, and still lists the verbs "+
		"get, list, watch and delete.",
		Behavior("cascade.custom.crd-discovery-verbs", Observed, CRD, Source(customDiscovery)), func(ctx SpecContext) {
			_, instances := terminating(ctx, "held")

			definitions.AwaitVerbs(ctx, cluster, instances[0], And(ContainElements("get", "list", "watch", "delete"), Not(ContainElement("create"))))
		})

	Specify("The custom resources of a terminating CustomResourceDefinition are readable, writable and deletable, and their finalizers "+
		"are removable.",
		Behavior("cascade.custom.crd-instances-writable", Observed, CRD,
			Source("k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go")), func(ctx SpecContext) {
			_, instances := terminating(ctx, "updated", "patched")
			updated, patched := instances[0], instances[1]

			note := map[string]any{"annotations": map[string]any{Domain + "/note": "late"}}
			Expect(cluster.Update(ctx, updated, WithMetadata(note)).GetAnnotations()).To(HaveKey(Domain + "/note"))
			cluster.Patch(ctx, patched, types.MergePatchType, map[string]any{"metadata": note})
			Expect(cluster.Get(ctx, patched).GetAnnotations()).To(HaveKey(Domain + "/note"))
			Expect(cluster.List(ctx, patched)).To(ContainElements(BeSameObjectAs(updated), BeSameObjectAs(patched)))

			for _, instance := range instances {
				cluster.Delete(ctx, instance)
				Expect(cluster.Get(ctx, instance)).To(And(BeTerminating(), HaveFinalizers(Hold)))
				cluster.Release(ctx, instance)
				Expect(cluster.TryGet(ctx, instance)).To(BeGone())
			}
		})

	Specify("Discovery must not list the kind of a removed CustomResourceDefinition, and requests for its custom "+
		"resources must return 404.",
		Behavior("cascade.custom.crd-removed-from-discovery", Core, CRD, Source(customResources), Promise(uninstalls)), func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
			instance := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "instance"))

			cluster.Delete(ctx, definition)

			definitions.AwaitRemoval(ctx, cluster, definition)
			definitions.AwaitVerbs(ctx, cluster, instance, BeEmpty())
			Expect(cluster.TryGet(ctx, instance)).To(BeGone())
			Eventually(ctx, func() Response {
				late := cluster.TryCreate(ctx, fixtures.CustomResource(cluster.Group(), "late"))
				Expect(late).To(beRefused) // by another API server perhaps as of a definition that is terminating
				return late
			}).WithPolling(definitionPolling).Should(HaveStatusCode(http.StatusNotFound))
		})

	Specify("The API server does not list the path of the group of a removed CustomResourceDefinition.",
		Behavior("cascade.custom.crd-removed-from-paths", Observed, CRD, Since("1.29"), Source("k8s.io/kube-aggregator/pkg/apiserver/apiserver.go")),
		func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group()))
			path := "/apis/" + cluster.Group()
			definitions.AwaitPaths(ctx, cluster, definitions.Root, ContainElement(path))

			cluster.Delete(ctx, definition)
			definitions.AwaitRemoval(ctx, cluster, definition)

			definitions.AwaitPaths(ctx, cluster, definitions.Root, Not(ContainElement(HavePrefix(path))))
		})
})

// through returns an object in another version of its API.
func through(object *Object, version string) *Object {
	other := object.DeepCopy()
	other.SetAPIVersion(object.GroupVersionKind().Group + "/" + version)
	return other
}

var _ = Describe("Custom resources with several versions", func() {
	cluster := UseCluster()

	Specify("A delete of a custom resource through any served version must delete the object.",
		Behavior("cascade.custom.any-version-deletes", Core, CRD,
			Source(versionedResources),
			Promise("It is perfectly safe for some clients to use the old version while others use the new version.")), func(ctx SpecContext) {
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group(), "v2"))

			for _, version := range []string{"v1", "v2"} {
				free := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "free-"+version))
				held := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "held-"+version), Held)
				cluster.Delete(ctx, through(free, version), IfUID(free.GetUID()))
				cluster.Delete(ctx, through(held, version))

				Expect(cluster.TryGet(ctx, free)).To(BeGone())
				Eventually(ctx, cluster.History(free)).Should(HaveObserved(Deleted(free)))
				Expect(cluster.Get(ctx, held)).To(And(BeTerminating(), HaveFinalizers(Hold)))
				cluster.Release(ctx, through(held, version))
				Expect(cluster.TryGet(ctx, held)).To(BeGone())
			}
		})

	Specify("A deleted custom resource is absent from every served version, even in reads from the watch cache.",
		Behavior("cascade.custom.gone-in-every-version", Observed, CRD, Source("kubernetes#131022")), func(ctx SpecContext) {
			getAt := func(ctx SpecContext, object *Object, version string) Response { // from a copy at least as new as a resourceVersion
				return cluster.Send(ctx, object, Request{Method: http.MethodGet, Query: url.Values{"resourceVersion": {version}}})
			}
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group(), "v2"))
			thing := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "thing"), Held)
			for _, version := range []string{"v1", "v2"} {
				Expect(getAt(ctx, through(thing, version), thing.GetResourceVersion())).To(HaveStatusCode(http.StatusOK))
			}

			cluster.Delete(ctx, thing)
			cluster.Release(ctx, through(thing, "v2"))

			Eventually(ctx, cluster.History(thing)).Should(HaveObserved(Terminating(thing), Deleted(thing)))
			events, err := cluster.History(thing).Events()
			Expect(err).NotTo(HaveOccurred())
			gone := events[len(events)-1].Object.GetResourceVersion()
			for _, version := range []string{"v1", "v2"} {
				Expect(cluster.TryGet(ctx, through(thing, version))).To(BeGone())
				// A copy as new as the deletion shows that the object is gone, and so does any later one.
				Expect(getAt(ctx, through(thing, version), gone)).To(BeGone())
				Expect(getAt(ctx, through(thing, version), "0")).To(BeGone())
			}
		})
})
