package framework

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// policyPolling is how often the API server is asked whether it goes by a policy. It compiles new ones once a second.
const policyPolling = 50 * time.Millisecond

// CreatePolicy makes a ValidatingAdmissionPolicy that denies the deletes of what the spec made unless a CEL expression is true,
// and waits until the API server goes by it. Like a webhook it is no use to others: what is not the spec's own never passes
// through it.
func (c *Cluster) CreatePolicy(ctx context.Context, expression, message string) {
	ginkgo.GinkgoHelper()
	canary := c.Create(ctx, fixtures.ConfigMap("policy-canary"), WithLabel(client.CanaryLabel, "policy"))
	policy := c.Create(ctx, fixtures.ValidatingAdmissionPolicy("policy"), ofRun(c.session.Run, c.id), denyingUnless(expression, message))
	c.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("binding"), WithField(policy.GetName(), "spec", "policyName"))
	gomega.Eventually(ctx, func() error {
		return c.TryDelete(ctx, canary, DryRun).Err
	}).WithPolling(policyPolling).ShouldNot(gomega.Succeed(), "the API server goes by a policy")
}

// ofRun narrows a policy to what one spec made, in the run's namespaces.
func ofRun(run, spec string) ObjectOption {
	return func(policy *Object) {
		WithField(map[string]any{"matchLabels": map[string]any{client.RunLabel: run}}, "spec", "matchConstraints", "namespaceSelector")(policy)
		WithField(map[string]any{"matchLabels": map[string]any{client.SpecLabel: spec}}, "spec", "matchConstraints", "objectSelector")(policy)
	}
}

// denyingUnless has a policy deny, beside the dry-run deletes of its canary, what an expression is not true of.
func denyingUnless(expression, message string) ObjectOption {
	canary := "has(oldObject.metadata.labels) && '" + client.CanaryLabel + "' in oldObject.metadata.labels"
	return WithField([]any{
		map[string]any{"expression": "!(request.dryRun && " + canary + ")", "message": "a canary"},
		map[string]any{"expression": canary + " || (" + expression + ")", "message": message},
	}, "spec", "validations")
}
