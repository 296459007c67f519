package finalizers

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	. "github.com/deletion-conformance/deletion-conformance/framework"
)

func (k kind) applyCannotAdd(ctx SpecContext) {
	object := k.terminating(ctx, "applied-late", first)

	Expect(k.TryApply(ctx, object, Domain, map[string]any{"finalizers": []string{second}})).
		To(HaveStatusCode(http.StatusUnprocessableEntity))

	Expect(k.Get(ctx, object)).To(BeUnchangedSince(object))
}

func (k kind) applyRemovesOwn(ctx SpecContext) {
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
	k.isGoneWithoutSecondDelete(ctx, object)
}
