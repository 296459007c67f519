package cascade

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// asController makes an owner the controller of its dependent.
func asController(reference *metav1.OwnerReference) { reference.Controller = new(true) }

var _ = Describe("Validation of owner references", func() {
	cluster := UseCluster()

	// refuse expects that an object can neither be created with nor updated to these fields.
	refuse := func(ctx SpecContext, like ...ObjectOption) {
		GinkgoHelper()
		living := cluster.Create(ctx, fixtures.ConfigMap("living"))
		Expect(cluster.TryCreate(ctx, fixtures.ConfigMap("refused"), like...)).To(HaveStatusCode(http.StatusUnprocessableEntity))
		all := func(object *Object) {
			for _, option := range like {
				option(object)
			}
		}
		Expect(cluster.TryUpdate(ctx, living, all)).To(HaveStatusCode(http.StatusUnprocessableEntity))
		Expect(cluster.Get(ctx, living)).To(BeUnchangedSince(living))
		cluster.Delete(ctx, living) // its name is reused
	}

	Specify("An owner reference without uid, kind, name or apiVersion must be refused with 422.",
		Behavior("cascade.ownership.required-fields", Core, AnyResource,
			Source(ownerReferences),
			Promise("apiVersion * ... kind * ... name * ... uid *")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			for _, without := range []ReferenceOption{
				func(reference *metav1.OwnerReference) { reference.UID = "" },
				func(reference *metav1.OwnerReference) { reference.Kind = "" },
				func(reference *metav1.OwnerReference) { reference.Name = "" },
				func(reference *metav1.OwnerReference) { reference.APIVersion = "" },
			} {
				refuse(ctx, OwnedBy(owner, without))
			}
		})

	Specify("An object with two owner references with controller true must be refused with 422.",
		Behavior("cascade.ownership.one-controller", Core, AnyResource,
			Source(objectMeta), Promise("There cannot be more than one managing controller.")), func(ctx SpecContext) {
			one := cluster.Create(ctx, fixtures.ConfigMap("one"))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"))

			refuse(ctx, OwnedBy(one, asController), OwnedBy(two, asController))
			cluster.Create(ctx, fixtures.ConfigMap("controlled"), OwnedBy(one, asController), OwnedBy(two))
		})

	Specify("Duplicate owner references are stored once, and the response contains a warning.",
		Behavior("cascade.ownership.duplicate-references", Observed, AnyResource,
			Source("apiserver/pkg/endpoints/handlers/rest.go")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"))

			created := cluster.TryCreate(ctx, fixtures.ConfigMap("created"), OwnedBy(owner), OwnedBy(owner))
			updated := cluster.TryUpdate(ctx, dependent, func(object *Object) {
				object.SetOwnerReferences([]metav1.OwnerReference{ReferenceTo(owner), ReferenceTo(owner)})
			})

			for _, response := range []Response{created, updated} {
				Expect(response.Err).NotTo(HaveOccurred())
				Expect(WarningsOf(cluster, response)).To(ContainElement(ContainSubstring(string(owner.GetUID()))), "a warning names the duplicate owner reference")
				Expect(response).To(BeOwnedBy(owner))
				Expect(cluster.Get(ctx, response.Object)).To(BeOwnedBy(owner))
			}
		})

	Specify("An owner reference to an Event is refused with 422.",
		Behavior("cascade.ownership.event-owners", Observed,
			Source("apimachinery/pkg/api/validation/objectmeta.go")), func(ctx SpecContext) {
			refuse(ctx, OwnedBy(cluster.Create(ctx, fixtures.EventAbout(cluster.Namespace(), "owner"))))
		})

	Specify("Server-side apply must merge owner references by uid and keep the references of other field managers.",
		Behavior("cascade.ownership.apply-merges-by-uid", Core, AnyResource,
			Source("reference/using-api/server-side-apply"),
			Promise("If `set` or `map`, different managers can manage entries separately.")), func(ctx SpecContext) {
			one := cluster.Create(ctx, fixtures.ConfigMap("one"))
			two := cluster.Create(ctx, fixtures.ConfigMap("two"))
			dependent := cluster.Create(ctx, fixtures.ConfigMap("dependent"))
			apply := func(manager string, references ...metav1.OwnerReference) Response {
				return cluster.TryApply(ctx, dependent, manager, map[string]any{"ownerReferences": references})
			}

			Expect(apply("first", ReferenceTo(one))).To(BeOwnedBy(one))
			Expect(apply("second", ReferenceTo(two))).To(BeOwnedBy(one, two))
			Expect(apply("first", ReferenceTo(one, Blocking))).To(BeOwnedBy(one, two))
			Expect(cluster.Get(ctx, dependent).GetOwnerReferences()).To(ConsistOf(ReferenceTo(one, Blocking), ReferenceTo(two)))
			Expect(apply("first")).To(BeOwnedBy(two))
			Expect(cluster.Get(ctx, dependent)).To(BeOwnedBy(two))
			// A name does not identify an owner. The garbage collector may remove the reference after the response, as its owner has another name.
			namesake := ReferenceTo(one)
			namesake.Name = two.GetName()
			Expect(apply("first", namesake)).To(BeOwnedBy(one, two))
		})
})
