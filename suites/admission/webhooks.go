package admission

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/webhooks"
)

var _ = Describe("Webhook configuration", func() {
	cluster := UseCluster()

	Specify("An unreachable webhook must block a delete with failurePolicy Fail and allow the delete with failurePolicy Ignore.",
		Behavior("admission.failure-policy", Core, AnyResource, Hook, Source(webhooksPage),
			Promise("`Fail` means that an error calling the webhook causes the admission to fail and the API request to be rejected.")),
		func(ctx SpecContext) {
			const policy = Domain + "/failure-policy"
			refused := cluster.Create(ctx, fixtures.ConfigMap("refused"), WithLabel(policy, "fail"))
			ignored := cluster.Create(ctx, fixtures.ConfigMap("ignored"), WithLabel(policy, "ignore"))
			webhooks.Validating(ctx, cluster, webhooks.Selecting(policy, "fail"), webhooks.FailurePolicyFail, webhooks.Unreachable)
			webhooks.Validating(ctx, cluster, webhooks.Selecting(policy, "ignore"), webhooks.Unreachable)

			Expect(cluster.TryDelete(ctx, refused).Err).To(HaveOccurred(), "the delete is rejected")
			Expect(cluster.Get(ctx, refused)).To(BeUnchangedSince(refused))

			cluster.Delete(ctx, ignored)
			Expect(cluster.TryGet(ctx, ignored)).To(BeGone())
		})

	// goUnreviewed deletes configurations, and expects that a webhook that denies all deletes is not called. Each kind of webhook is called
	// for a cluster-scoped object that is not a configuration.
	goUnreviewed := func(ctx SpecContext, create func(ctx SpecContext, suffix string) []*Object) {
		GinkgoHelper()
		for kind, register := range map[string]func(context.Context, *Cluster, ...webhooks.Option) *webhooks.Webhook{
			"validating": webhooks.Validating, "mutating": webhooks.Mutating,
		} {
			configurations, other := create(ctx, kind), cluster.Create(ctx, fixtures.ClusterRole("other-"+kind))
			webhook := register(ctx, cluster)
			for _, object := range append(configurations, other) {
				webhook.Deny(object, denial)
			}

			for _, configuration := range configurations {
				cluster.Delete(ctx, configuration)
				Expect(cluster.TryGet(ctx, configuration)).To(BeGone())
				Expect(webhook.Reviews(configuration)).To(BeEmpty(), "reviews by a %s webhook", kind)
			}
			Expect(cluster.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusForbidden), "a %s webhook protects other objects", kind)
			webhook.Allow(other)
		}
	}

	Specify("A webhook must not be called for deletes of validating and mutating webhook configurations.",
		Behavior("admission.webhooks-cannot-protect-themselves", Core, Hook, Admin, Source(apiWebhooks),
			Promise("ValidatingAdmissionWebhooks and MutatingAdmissionWebhooks are never called on admission requests for "+
				"ValidatingWebhookConfiguration and MutatingWebhookConfiguration objects.")), func(ctx SpecContext) {
			goUnreviewed(ctx, func(ctx SpecContext, suffix string) []*Object {
				return []*Object{
					cluster.Create(ctx, fixtures.ValidatingWebhookConfiguration("validating-"+suffix)),
					cluster.Create(ctx, fixtures.MutatingWebhookConfiguration("mutating-"+suffix)),
				}
			})
		})

	Specify("A webhook must not be called for deletes of ValidatingAdmissionPolicies and their bindings.",
		Behavior("admission.webhooks-cannot-protect-policies", Core, Hook, Admin, Since("1.30"), Source("KEP-3488"),
			Promise("`ValidatingWebhookConfiguration` cannot match `MutatingWebhookConfiguration` or "+
				"`ValidatingAdmissionPolicy`/`PolicyBinding`/param resources.")), func(ctx SpecContext) {
			goUnreviewed(ctx, func(ctx SpecContext, suffix string) []*Object {
				return []*Object{
					cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("policy-"+suffix)),
					cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("binding-"+suffix)),
				}
			})
		})

	Specify("A webhook is not called for deletes of MutatingAdmissionPolicies and their bindings.",
		Behavior("admission.mutating-policies-are-not-reviewed", Observed, Hook, Admin, Since("1.36"),
			Source("k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules/rules.go")), func(ctx SpecContext) {
			goUnreviewed(ctx, func(ctx SpecContext, suffix string) []*Object {
				return []*Object{
					cluster.Create(ctx, fixtures.MutatingAdmissionPolicy("policy-"+suffix)),
					cluster.Create(ctx, fixtures.MutatingAdmissionPolicyBinding("binding-"+suffix)),
				}
			})
		})

	Specify("A webhook with sideEffects Some or Unknown must be refused with 422, and a webhook with NoneOnDryRun must "+
		"receive dry-run deletes marked as such.",
		Behavior("admission.dry-run-side-effects", Core, AnyResource, Hook, Source(apiWebhooks),
			Promise("Acceptable values are: None, NoneOnDryRun (webhooks created via v1beta1 may also specify Some or Unknown).")), func(ctx SpecContext) {
			for _, class := range []registrationv1.SideEffectClass{registrationv1.SideEffectClassSome, registrationv1.SideEffectClassUnknown} {
				Expect(webhooks.TryRegister(ctx, cluster, webhooks.SideEffects(class))).To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			webhook := webhooks.Validating(ctx, cluster, webhooks.SideEffects(registrationv1.SideEffectClassNoneOnDryRun))

			cluster.Delete(ctx, object, DryRun)

			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
			Expect(webhook.Reviews(object)).To(some(HaveField("DryRun", HaveValue(BeTrue()))))
		})

	Specify("The objectSelector and matchConditions of a webhook must be evaluated against the oldObject of a delete.",
		Behavior("admission.selectors-use-old-object", Core, AnyResource, Hook, Source(webhooksPage),
			Promise("the objectSelector is evaluated against both the object and oldObject that would be sent to the webhook")), func(ctx SpecContext) {
			const selected, meant = Domain + "/selected", Domain + "/meant"
			both := cluster.Create(ctx, fixtures.ConfigMap("both"), WithLabel(selected, "yes"), WithLabel(meant, "yes"))
			unmeant := cluster.Create(ctx, fixtures.ConfigMap("unmeant"), WithLabel(selected, "yes"))
			unselected := cluster.Create(ctx, fixtures.ConfigMap("unselected"), WithLabel(meant, "yes"))
			webhook := webhooks.Validating(ctx, cluster, webhooks.Selecting(selected, "yes"), webhooks.MatchCondition("'"+meant+"' in oldObject.metadata.labels"))

			for _, object := range []*Object{both, unmeant, unselected} {
				cluster.Delete(ctx, object)
			}

			Expect(webhook.Reviews(both)).NotTo(BeEmpty())
			Expect(webhook.Reviews(unmeant)).To(BeEmpty())
			Expect(webhook.Reviews(unselected)).To(BeEmpty())
		})

	Specify("A warning of a webhook must reach the client whose delete is reviewed.",
		Behavior("admission.webhook-warns", Core, AnyResource, Hook, Source(webhooksPage),
			Promise("Admission webhooks can optionally return warning messages that are returned to the requesting client in HTTP `Warning` "+
				"headers with a warning code of 299.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			webhook := webhooks.Validating(ctx, cluster)
			webhook.Warn(object, denial)

			response := Require(cluster.TryDelete(ctx, object))

			Expect(WarningsOf(cluster, response)).To(ContainElement(denial))
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("A mutating webhook is called for each review of the delete of a pod for which a validating webhook is called.",
		Behavior("admission.mutating-and-validating", Observed, Hook, Source("k8s.io/apiserver/pkg/registry/rest/delete.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.UnscheduledPod("pod"))
			validating, mutating := webhooks.Validating(ctx, cluster), webhooks.Mutating(ctx, cluster)

			cluster.Delete(ctx, pod)

			Expect(validating.Reviews(pod)).NotTo(BeEmpty())
			Expect(mutating.Reviews(pod)).To(HaveLen(len(validating.Reviews(pod))))
		})

	Specify("A mutating webhook that answers a delete with a patch causes the delete to fail with 500 and change nothing.",
		Behavior("admission.patch-is-refused", Observed, Hook,
			Source("k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go")), func(ctx SpecContext) {
			patched := cluster.Create(ctx, fixtures.ConfigMap("patched"))
			allowed := cluster.Create(ctx, fixtures.ConfigMap("allowed"))
			webhook := webhooks.Mutating(ctx, cluster)
			webhook.Patch(patched)

			Expect(cluster.TryDelete(ctx, patched)).To(HaveStatusCode(http.StatusInternalServerError))
			Expect(cluster.Get(ctx, patched)).To(BeUnchangedSince(patched))

			cluster.Delete(ctx, allowed)
			Expect(webhook.Reviews(allowed)).To(HaveLen(1), "a mutating webhook is called for deletes")
		})
})
