package permission

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

const (
	// verbs is the page of the documentation on the verb of a request.
	verbs = "reference/access-authn-authz/authorization"
	// ownVerb is the sentence of that page on the verb of a delete.
	ownVerb = "Kubernetes maps the HTTP verb used and considers whether or not the request acts on an individual resource or on a " +
		"collection of resources"
	// evictions is the page of the documentation on evictions.
	evictions = "concepts/scheduling-eviction/api-eviction"
)

var _ = Describe("Permissions", func() {
	cluster := UseCluster()

	Specify("Permission to update and patch must not grant delete, permission to delete must not grant "+
		"deletecollection, and deletecollection must not grant delete.",
		Behavior("permission.separate-verbs", Core, AnyResource, Admin, Source(verbs), Promise(ownVerb)), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			writer := users.As(ctx, cluster, "writer", users.May("configmaps", "get", "list", "update", "patch"))
			deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "delete"))
			sweeper := users.As(ctx, cluster, "sweeper", users.May("configmaps", "deletecollection"))

			for _, response := range []Response{
				writer.TryDelete(ctx, object), writer.TryDeleteCollection(ctx, object),
				deleter.TryDeleteCollection(ctx, object), sweeper.TryDelete(ctx, object),
			} {
				Expect(response).To(HaveStatusCode(http.StatusForbidden))
			}
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))

			Expect(deleter.TryDelete(ctx, object, DryRun)).To(BeAccepted())
			Expect(sweeper.TryDeleteCollection(ctx, object, DryRun)).To(BeAccepted())
		})

	Specify("Permission to delete an object by its name must grant neither the delete of another object nor deletecollection.",
		Behavior("permission.resource-names", Core, AnyResource, Admin,
			Source("reference/access-authn-authz/rbac"),
			Promise("When specified, requests can be restricted to individual instances of a resource. ... You cannot restrict "+
				"**deletecollection** or top-level **create** requests by resource name.")), func(ctx SpecContext) {
			named, other := cluster.Create(ctx, fixtures.ConfigMap("named")), cluster.Create(ctx, fixtures.ConfigMap("other"))
			byName := users.May("configmaps", "delete", "deletecollection")
			byName.ResourceNames = []string{named.GetName()}
			deleter := users.As(ctx, cluster, "deleter", byName)

			Expect(deleter.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusForbidden))
			Expect(deleter.TryDeleteCollection(ctx, named)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, other)).To(BeUnchangedSince(other))
			Expect(cluster.Get(ctx, named)).To(BeUnchangedSince(named))

			Expect(deleter.TryDelete(ctx, named)).To(BeAccepted())
			Expect(cluster.TryGet(ctx, named)).To(BeGone())
		})

	Specify("Permission to delete must not allow the removal of a finalizer, and permission to update or patch must.",
		Behavior("permission.finalizer-removal", Core, AnyResource, Admin, Source(verbs), Promise(ownVerb)), func(ctx SpecContext) {
			updated := cluster.Create(ctx, fixtures.ConfigMap("updated"), Held)
			patched := cluster.Create(ctx, fixtures.ConfigMap("patched"), Held)
			deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "get", "delete", "deletecollection"))
			updater := users.As(ctx, cluster, "updater", users.May("configmaps", "get", "update"))
			patcher := users.As(ctx, cluster, "patcher", users.May("configmaps", "patch"))
			withoutFinalizers := map[string]any{"metadata": map[string]any{"finalizers": nil}}

			for _, object := range []*Object{updated, patched} {
				Expect(deleter.TryDelete(ctx, object)).To(BeAccepted())
			}
			updated, patched = cluster.Get(ctx, updated), cluster.Get(ctx, patched)
			Expect(deleter.TryUpdate(ctx, updated, WithoutFinalizers(Hold))).To(HaveStatusCode(http.StatusForbidden))
			Expect(deleter.TryPatch(ctx, patched, types.MergePatchType, withoutFinalizers)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, updated)).To(BeUnchangedSince(updated))
			Expect(cluster.Get(ctx, patched)).To(BeUnchangedSince(patched))

			Expect(updater.TryUpdate(ctx, updated, WithoutFinalizers(Hold))).To(HaveStatusCode(http.StatusOK))
			Expect(patcher.TryPatch(ctx, patched, types.MergePatchType, withoutFinalizers)).To(HaveStatusCode(http.StatusOK))
			for _, object := range []*Object{updated, patched} {
				Expect(cluster.TryGet(ctx, object)).To(BeGone())
			}
		})

	Specify("Permission to create pods/eviction must allow evictions but not deletes, and permission to delete pods "+
		"must not allow evictions.",
		Behavior("permission.eviction", Core, Admin,
			Source(evictions),
			Promise("the eviction is allowed, the `Eviction` subresource is created, and the Pod is deleted")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			deleter := users.As(ctx, cluster, "deleter", users.May("pods", "get", "create", "delete"))
			evicter := users.As(ctx, cluster, "evicter", users.May("pods/eviction", "create"))

			Expect(deleter.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusForbidden))
			Expect(evicter.TryDelete(ctx, pod)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))

			Expect(evicter.TryEvict(ctx, pod)).To(Or(HaveStatusCode(http.StatusOK), HaveStatusCode(http.StatusCreated)))
			Expect(cluster.Get(ctx, pod)).To(BeTerminating())
		})

	Specify("A delete that ignores read errors must be refused with 403 without permission for the verb unsafe-delete-ignore-read-errors.",
		Behavior("permission.unsafe-delete", Extended, AnyResource, Admin, Since("1.32"), Source("KEP-3926")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			// With another option, which is refused before anything is read.
			if cluster.TryDelete(ctx, object, IgnoringReadErrors, Background, DryRun).Err == nil {
				Skip("the API server does not know the option: the feature gate AllowUnsafeMalformedObjectDeletion is off")
			}
			may := users.May("configmaps", "delete")
			deleter := users.As(ctx, cluster, "deleter", may)
			unsafe := users.As(ctx, cluster, "unsafe", may, users.May("configmaps", "unsafe-delete-ignore-read-errors"))

			denied := deleter.TryDelete(ctx, object, IgnoringReadErrors)
			if denied.StatusCode == http.StatusInternalServerError { // roles and others whose storage is wrapped
				Skip("the API server does not support the option for objects of kind " + object.GetKind())
			}
			Expect(denied).To(HaveStatusCode(http.StatusForbidden))
			// The object can be read, which is another reason to refuse.
			Expect(unsafe.TryDelete(ctx, object, IgnoringReadErrors)).NotTo(Or(HaveStatusCode(http.StatusForbidden), BeAccepted()))
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("A dry-run delete must require the same permission as a delete.",
		Behavior("permission.dry-run", Core, AnyResource, Admin,
			Source("reference/using-api/api-concepts"),
			Promise("Authorization for dry-run and non-dry-run requests is identical.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			writer := users.As(ctx, cluster, "writer", users.May("configmaps", "get", "list", "update", "patch"))
			deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "delete"))

			Expect(writer.TryDelete(ctx, object, DryRun)).To(HaveStatusCode(http.StatusForbidden))
			Expect(writer.TryDelete(ctx, object, DryRun, InQuery)).To(HaveStatusCode(http.StatusForbidden))
			Expect(writer.TryDeleteCollection(ctx, object, DryRun)).To(HaveStatusCode(http.StatusForbidden))

			Expect(deleter.TryDelete(ctx, object, DryRun)).To(BeAccepted())
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("A delete of an absent object must return 403 without permission to delete, and 404 with permission.",
		Behavior("permission.absent-object", Core, AnyResource, Admin,
			Source(verbs),
			Promise("the API server rejects the request and responds with an HTTP 403 (Forbidden) status")), func(ctx SpecContext) {
			absent := cluster.Create(ctx, fixtures.ConfigMap("absent"))
			cluster.Delete(ctx, absent)
			reader := users.As(ctx, cluster, "reader", users.May("configmaps", "get"))
			deleter := users.As(ctx, cluster, "deleter", users.May("configmaps", "delete"))

			Expect(reader.TryDelete(ctx, absent)).To(HaveStatusCode(http.StatusForbidden))
			Expect(deleter.TryDelete(ctx, absent)).To(HaveStatusCode(http.StatusNotFound))
		})
})
