package options

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// unreadablePolling is how often an object is read until the API server follows a definition; that cannot be watched.
const unreadablePolling = 50 * time.Millisecond

var _ = Describe("Deletes of unreadable objects", func() {
	cluster := UseCluster()

	// An object of a custom kind cannot be read in a version to which it cannot be converted. In the version in which it is stored, which
	// is the preferred one, it can be, so that nothing else on the cluster is disturbed.
	const stored, other = "v1", "v1beta1"
	inOther := func(object *Object) *Object {
		asked := object.DeepCopy()
		asked.SetAPIVersion(strings.TrimSuffix(object.GetAPIVersion(), stored) + other)
		return asked
	}

	Specify("A delete that ignores read errors must remove an object that cannot be read, even with a finalizer, and a delete that does "+
		"not must fail and leave the object.",
		Behavior("options.unsafe-removes-unreadable", Extended, CRD, Since("1.32"), Source(deleteOptions),
			Promise("unsafe deletion ignores finalizer constraints, skips precondition checks, and removes the object from the storage.")),
		func(ctx SpecContext) {
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(cluster.Group(), other))
			free := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "free"))
			held := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "held"), Held)
			bystander := cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "bystander"))
			if cluster.TryDelete(ctx, bystander, IgnoringReadErrors, Background, DryRun).Err == nil {
				Skip("the API server does not know the option: the feature gate AllowUnsafeMalformedObjectDeletion is off")
			}
			cluster.Unwatch(ctx, free) // a definition that changes ends the watches of what it defines
			cluster.Update(ctx, definition, definitions.UnreachableConversion)
			Eventually(ctx, func() Response { return cluster.TryGet(ctx, inOther(bystander)) }).WithPolling(unreadablePolling).
				Should(HaveStatusCode(http.StatusInternalServerError), "the object cannot be read")

			for _, object := range []*Object{free, held} {
				Expect(cluster.TryDelete(ctx, inOther(object))).To(HaveStatusCode(http.StatusInternalServerError))
				Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
				response := cluster.TryDelete(ctx, inOther(object), IgnoringReadErrors)
				if response.StatusCode == http.StatusForbidden {
					Skip("the credentials do not permit unsafe deletes: " + response.Message())
				}
				Expect(response).To(BeAccepted())
				Expect(cluster.TryGet(ctx, object)).To(BeGone())
			}
			Expect(cluster.TryDelete(ctx, bystander, IgnoringReadErrors)).NotTo(BeAccepted(), "a readable object")
			Expect(cluster.Get(ctx, bystander)).To(BeUnchangedSince(bystander))
		})
})
