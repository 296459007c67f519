package admission

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// policies is the page of the documentation on admission policies.
const policies = "reference/access-authn-authz/validating-admission-policy"

var _ = Describe("ValidatingAdmissionPolicies", func() {
	cluster := UseCluster()

	Specify("A ValidatingAdmissionPolicy must be able to deny a delete with 422 by a label of oldObject.",
		Behavior("admission.policy-denies", Core, Admin, Since("1.30"), Source(policies),
			Promise("`Deny`: Validation failure results in a denied request.")), func(ctx SpecContext) {
			const protected = Domain + "/protected"
			stays := cluster.Create(ctx, fixtures.ConfigMap("stays"), WithLabel(protected, "yes"))
			goes := cluster.Create(ctx, fixtures.ConfigMap("goes"))
			createPolicy(ctx, cluster, "!('"+protected+"' in oldObject.metadata.labels)", denial)

			response := cluster.TryDelete(ctx, stays)

			Expect(response).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(response.Message()).To(ContainSubstring(denial))
			Expect(cluster.Get(ctx, stays)).To(BeUnchangedSince(stays))
			cluster.Delete(ctx, goes)
			Expect(cluster.TryGet(ctx, goes)).To(BeGone())
		})

	Specify("A ValidatingAdmissionPolicy must not be able to deny the delete of policies and policy bindings.",
		Behavior("admission.policies-cannot-protect-themselves", Core, Admin, Since("1.30"), Source("KEP-3488"),
			Promise("`ValidatingAdmissionPolicy` cannot match `ValidatingAdmissionPolicy`/`PolicyBinding`/param resources.")), func(ctx SpecContext) {
			policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("unbound"))
			binding := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("unbound"))
			other := cluster.Create(ctx, fixtures.ClusterRole("other")) // of which namespaces do not tell
			createPolicy(ctx, cluster, "false", denial)

			for _, configuration := range []*Object{policy, binding} {
				cluster.Delete(ctx, configuration)
				Expect(cluster.TryGet(ctx, configuration)).To(BeGone())
			}
			Expect(cluster.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusUnprocessableEntity), "the policy denies the delete of other objects")
		})
})

// policyPolling is how often a delete is repeated until a policy applies. The API server compiles new policies once a second.
const policyPolling = 50 * time.Millisecond

// createPolicy makes a ValidatingAdmissionPolicy that denies the deletes of what the spec made unless a CEL expression is true,
// and waits until the API server follows it. Like a webhook it is no use to others: what is not the spec's own never passes
// through it.
func createPolicy(ctx context.Context, cluster *Cluster, expression, message string) {
	GinkgoHelper()
	canary := cluster.Create(ctx, fixtures.ConfigMap("policy-canary"), WithLabel(CanaryLabel, "policy"))
	policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("policy"), ofSpec(cluster), denyingUnless(expression, message))
	cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("binding"), WithField(policy.GetName(), "spec", "policyName"))
	Eventually(ctx, func() error {
		return cluster.TryDelete(ctx, canary, DryRun).Err
	}).WithPolling(policyPolling).ShouldNot(Succeed(), "the API server enforces the policy")
}

// ofSpec narrows a policy to what the spec made, in the run's namespaces.
func ofSpec(cluster *Cluster) ObjectOption {
	matching := func(labels map[string]string) map[string]any {
		values := map[string]any{}
		for name, value := range labels {
			values[name] = value
		}
		return map[string]any{"matchLabels": values}
	}
	return func(policy *Object) {
		WithField(matching(map[string]string{session.RunLabel: cluster.Session().Run}), "spec", "matchConstraints", "namespaceSelector")(policy)
		WithField(matching(cluster.Labels()), "spec", "matchConstraints", "objectSelector")(policy)
	}
}

// denyingUnless has a policy deny, beside the dry-run deletes of its canary, what an expression is not true of.
func denyingUnless(expression, message string) ObjectOption {
	canary := "has(oldObject.metadata.labels) && '" + CanaryLabel + "' in oldObject.metadata.labels"
	return WithField([]any{
		map[string]any{"expression": "!(request.dryRun && " + canary + ")", "message": "a canary"},
		map[string]any{"expression": canary + " || (" + expression + ")", "message": message},
	}, "spec", "validations")
}
