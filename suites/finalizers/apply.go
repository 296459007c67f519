package finalizers

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// applies are the specs about finalizers and server-side apply.
func (o *kindSpecs) applies() {
	o.must("A server-side apply that adds a finalizer to a terminating object must be refused with 422.",
		Behavior("finalizers.apply-cannot-add", Core, AnyResource, Source(onlyRemoved.source), Promise(onlyRemoved.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "applied-late", first)

			Expect(k.TryApply(ctx, object, Domain, map[string]any{"finalizers": []string{second}})).
				To(HaveStatusCode(http.StatusUnprocessableEntity))

			Expect(k.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	o.must("A server-side apply must remove only the finalizers of its field manager, and must keep a finalizer that another "+
		"manager also applies.",
		Behavior("finalizers.apply-removes-own", Core, AnyResource, Source(ownItemsOnly.source), Promise(ownItemsOnly.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			apply := func(object *Object, manager string, finalizers ...string) {
				GinkgoHelper()
				metadata := map[string]any{"finalizers": finalizers}
				Expect(k.TryApply(ctx, object, manager, metadata)).To(HaveStatusCode(http.StatusOK))
			}
			object := k.Create(ctx, k.manifest("shared"))
			apply(object, "one", first, third)
			apply(object, "two", second, third)
			k.Delete(ctx, object)
			Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(first, second, third)))

			apply(object, "one")
			Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(second, third)))
			apply(object, "two", third)
			Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(third)))
			apply(object, "two")
			k.expectDeletedOnce(ctx, object)
		})
}
