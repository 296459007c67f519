package admission

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// policies is the page of the documentation on admission policies.
const policies = "reference/access-authn-authz/validating-admission-policy"

var _ = Describe("a ValidatingAdmissionPolicy for deletes", func() {
	cluster := UseCluster()

	Specify("it denies a delete by a label of oldObject, 422",
		Behavior("admission.policy-denies", Core, Admin, Since("1.30"), Source(policies),
			Promise("`Deny`: Validation failure results in a denied request.")), func(ctx SpecContext) {
			const protected = Domain + "/protected"
			stays := cluster.Create(ctx, fixtures.ConfigMap("stays"), WithLabel(protected, "yes"))
			goes := cluster.Create(ctx, fixtures.ConfigMap("goes"))
			cluster.CreatePolicy(ctx, "!('"+protected+"' in oldObject.metadata.labels)", denial)

			response := cluster.TryDelete(ctx, stays)

			Expect(response).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(response.Message()).To(ContainSubstring(denial))
			Expect(cluster.Get(ctx, stays)).To(BeUnchangedSince(stays))
			cluster.Delete(ctx, goes)
			Expect(cluster.TryGet(ctx, goes)).To(BeGone())
		})

	Specify("it cannot deny the deletion of policies and bindings",
		Behavior("admission.policies-cannot-protect-themselves", Core, Admin, Since("1.30"), Source("KEP-3488"),
			Promise("`ValidatingAdmissionPolicy` cannot match `ValidatingAdmissionPolicy`/`PolicyBinding`/param resources.")), func(ctx SpecContext) {
			policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("unbound"))
			binding := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("unbound"))
			other := cluster.Create(ctx, fixtures.ClusterRole("other")) // of which namespaces do not tell
			cluster.CreatePolicy(ctx, "false", denial)

			for _, configuration := range []*Object{policy, binding} {
				cluster.Delete(ctx, configuration)
				Expect(cluster.TryGet(ctx, configuration)).To(BeGone())
			}
			Expect(cluster.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusUnprocessableEntity), "what is no policy can be protected")
		})
})
