package admission

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
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
			createPolicy(ctx, cluster, "!('"+protected+"' in oldObject.metadata.labels)")

			response := cluster.TryDelete(ctx, stays)

			Expect(response).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(response.Message()).To(ContainSubstring(denial))
			Expect(cluster.Get(ctx, stays)).To(BeUnchangedSince(stays))
			cluster.Delete(ctx, goes)
			Expect(cluster.TryGet(ctx, goes)).To(BeGone())
		})

	Specify("In a ValidatingAdmissionPolicy, object must be null for a delete.",
		Behavior("admission.policy-object-null", Core, Admin, Since("1.30"), Source(policies),
			Promise("The object from the incoming request. The value is null for DELETE requests.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			createPolicy(ctx, cluster, "object == null")

			cluster.Delete(ctx, object)

			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("A ValidatingAdmissionPolicy with the action Warn must let a delete through and return its message as a warning.",
		Behavior("admission.policy-warns", Core, Admin, Since("1.30"), Source(policies),
			Promise("`Warn`: Validation failure is reported to the request client as a warning.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			createPolicy(ctx, cluster, "false", "Warn")

			response := Require(cluster.TryDelete(ctx, object))

			Expect(WarningsOf(cluster, response)).To(ContainElement(ContainSubstring(denial)))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("A ValidatingAdmissionPolicy with the action Audit must let a delete through and add its message to the audit event of the delete.",
		Behavior("admission.policy-audits", Core, Admin, Since("1.30"), Source(policies),
			Promise("`Audit`: Validation failure is included in the audit event for the API request.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			components.AuditEvents(ctx, cluster, object) // skips the spec where there is no log
			createPolicy(ctx, cluster, "false", "Audit", "Warn")

			Require(cluster.TryDelete(ctx, object))

			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			Eventually(ctx, components.AuditEvents).WithArguments(cluster, object).WithPolling(PolicyPolling).Should(ContainElement(And(
				HaveField("Verb", "delete"),
				HaveField("Annotations", HaveKeyWithValue("validation.policy.admission.k8s.io/validation_failure", ContainSubstring(denial))))))
		})

	Specify("A MutatingAdmissionPolicy for the operation DELETE is refused with 422, and a policy for all operations does not affect deletes.",
		Behavior("admission.mutating-policies-ignore-deletes", Observed, Admin, Since("1.36"),
			Source("pkg/apis/admissionregistration/validation/validation.go")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			matching := func(operation string) []ObjectOption {
				rule := map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{operation},
				}
				return []ObjectOption{
					WithField([]any{rule}, "spec", "matchConstraints", "resourceRules"), ofSpec(cluster), WithField("Fail", "spec", "failurePolicy"),
				}
			}
			Expect(cluster.TryCreate(ctx, fixtures.MutatingAdmissionPolicy("of-deletes"), matching("DELETE")...)).To(HaveStatusCode(http.StatusUnprocessableEntity))

			// It fails for each object, as none has this annotation.
			failing := WithField([]any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{
				"expression": `[JSONPatch{op: "remove", path: "/metadata/annotations/never"}]`,
			}}}, "spec", "mutations")
			// The condition refuses updates before that, because a mutation returns 503 until the server has read the schema of the kind.
			refusing := WithField([]any{map[string]any{
				"name": "refuses-updates", "expression": `request.operation == "DELETE" || object.metadata.annotations.never == ""`,
			}}, "spec", "matchConditions")
			policy := cluster.Create(ctx, fixtures.MutatingAdmissionPolicy("of-all"), append(matching("*"), failing, refusing)...)
			cluster.Create(ctx, fixtures.MutatingAdmissionPolicyBinding("binding"), WithField(policy.GetName(), "spec", "policyName"))
			Eventually(ctx, func() error {
				return cluster.DryRun().TryUpdate(ctx, object, WithLabel(Domain+"/note", "written")).Err
			}).WithPolling(PolicyPolling).ShouldNot(Succeed(), "the API server enforces the policy")

			cluster.Delete(ctx, object)
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("A ValidatingAdmissionPolicy must not be able to deny the delete of policies and policy bindings.",
		Behavior("admission.policies-cannot-protect-themselves", Core, Admin, Since("1.30"), Source("KEP-3488"),
			Promise("`ValidatingAdmissionPolicy` cannot match `ValidatingAdmissionPolicy`/`PolicyBinding`/param resources.")), func(ctx SpecContext) {
			policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("unbound"))
			binding := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("unbound"))
			other := cluster.Create(ctx, fixtures.ClusterRole("other")) // which the namespace selector does not cover
			createPolicy(ctx, cluster, "false")

			for _, configuration := range []*Object{policy, binding} {
				cluster.Delete(ctx, configuration)
				Expect(cluster.TryGet(ctx, configuration)).To(BeGone())
			}
			Expect(cluster.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusUnprocessableEntity), "the policy denies the delete of other objects")
		})
})

// createPolicy creates a ValidatingAdmissionPolicy that denies deletes of the spec's objects unless a CEL expression is true, and waits
// until the API server enforces it. Like a webhook of a spec it does not match requests of other users. Other actions than Deny must
// include Warn, which shows that the policy is enforced.
func createPolicy(ctx context.Context, cluster *Cluster, expression string, actions ...any) {
	GinkgoHelper()
	if len(actions) == 0 {
		actions = []any{"Deny"}
	}
	canary := cluster.Create(ctx, fixtures.ConfigMap("policy-canary"), WithLabel(CanaryLabel, "policy"))
	policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("policy"), ofSpec(cluster), denyingUnless(expression))
	cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("binding"), WithField(policy.GetName(), "spec", "policyName"),
		WithField(actions, "spec", "validationActions"))
	Eventually(ctx, func() bool {
		response := cluster.TryDelete(ctx, canary, DryRun)
		return response.Err != nil || len(WarningsOf(cluster, response)) > 0
	}).WithPolling(PolicyPolling).Should(BeTrue(), "the API server enforces the policy")
}

// ofSpec restricts a policy to the spec's objects in the run's namespaces.
func ofSpec(cluster *Cluster) ObjectOption {
	matching := func(labels map[string]string) map[string]any {
		values := map[string]any{}
		for name, value := range labels {
			values[name] = value
		}
		return map[string]any{"matchLabels": values}
	}
	return func(policy *Object) {
		WithField(matching(cluster.NamespaceLabels()), "spec", "matchConstraints", "namespaceSelector")(policy)
		WithField(matching(cluster.Labels()), "spec", "matchConstraints", "objectSelector")(policy)
	}
}

// denyingUnless makes a policy deny requests for which an expression is false, and dry-run deletes of its canary.
func denyingUnless(expression string) ObjectOption {
	canary := "has(oldObject.metadata.labels) && '" + CanaryLabel + "' in oldObject.metadata.labels"
	return WithField([]any{
		map[string]any{"expression": "!(request.dryRun && " + canary + ")", "message": "a canary"},
		map[string]any{"expression": canary + " || (" + expression + ")", "message": denial},
	}, "spec", "validations")
}
