package admission

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("a webhook for deletes", func() {
	cluster := UseCluster()

	Specify("when it cannot be reached, its failurePolicy Fail has the delete refused, and Ignore lets it through",
		Behavior("admission.failure-policy", Core, AnyResource, Hook, Source(webhooks)), func(ctx SpecContext) {
			const policy = Domain + "/failure-policy"
			refused := cluster.Create(ctx, fixtures.ConfigMap("refused"), WithLabel(policy, "fail"))
			ignored := cluster.Create(ctx, fixtures.ConfigMap("ignored"), WithLabel(policy, "ignore"))
			cluster.CreateWebhook(ctx, Selecting(policy, "fail"), FailurePolicyFail, Unreachable)
			cluster.CreateWebhook(ctx, Selecting(policy, "ignore"), Unreachable)

			Expect(cluster.TryDelete(ctx, refused)).To(HaveStatusCode(http.StatusInternalServerError))
			Expect(cluster.Get(ctx, refused)).To(BeUnchangedSince(refused))

			cluster.Delete(ctx, ignored)
			Expect(cluster.TryGet(ctx, ignored)).To(BeGone())
		})

	Specify("it cannot deny the deletion of webhook configurations, admission policies and their bindings: it is not asked",
		Behavior("admission.webhooks-cannot-protect-themselves", Core, Hook, Admin, Source(webhooks)), func(ctx SpecContext) {
			configurations := []*Object{
				cluster.Create(ctx, fixtures.ValidatingWebhookConfiguration("configuration")),
				cluster.Create(ctx, fixtures.MutatingWebhookConfiguration("configuration")),
				cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("policy")),
				cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("binding")),
			}
			other := cluster.Create(ctx, fixtures.ClusterRole("other"))
			webhook := cluster.CreateWebhook(ctx)
			for _, object := range append(configurations, other) {
				webhook.Deny(object, denial)
			}

			for _, configuration := range configurations {
				cluster.Delete(ctx, configuration)
				Expect(cluster.TryGet(ctx, configuration)).To(BeGone())
				Expect(webhook.Reviews(configuration)).To(BeEmpty())
			}
			Expect(cluster.TryDelete(ctx, other)).To(HaveStatusCode(http.StatusForbidden), "what is no configuration can be protected")
		})

	Specify("one that has side effects when asked about a dry-run cannot be registered, 422; one that has them otherwise is asked about "+
		"a dry-run delete, and told that it is one",
		Behavior("admission.dry-run-needs-no-side-effects", Core, AnyResource, Hook, Source(webhooks)), func(ctx SpecContext) {
			for _, class := range []registrationv1.SideEffectClass{registrationv1.SideEffectClassSome, registrationv1.SideEffectClassUnknown} {
				Expect(cluster.TryRegisterWebhook(ctx, SideEffects(class))).To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			webhook := cluster.CreateWebhook(ctx, SideEffects(registrationv1.SideEffectClassNoneOnDryRun))

			cluster.Delete(ctx, object, DryRun)

			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
			Expect(webhook.Reviews(object)).To(ConsistOf(HaveField("DryRun", HaveValue(BeTrue()))))
		})

	Specify("its objectSelector and its matchConditions look at oldObject",
		Behavior("admission.selectors-see-old-object", Core, AnyResource, Hook, Source(webhooks)), func(ctx SpecContext) {
			const selected, meant = Domain + "/selected", Domain + "/meant"
			both := cluster.Create(ctx, fixtures.ConfigMap("both"), WithLabel(selected, "yes"), WithLabel(meant, "yes"))
			unmeant := cluster.Create(ctx, fixtures.ConfigMap("unmeant"), WithLabel(selected, "yes"))
			unselected := cluster.Create(ctx, fixtures.ConfigMap("unselected"), WithLabel(meant, "yes"))
			webhook := cluster.CreateWebhook(ctx, Selecting(selected, "yes"), MatchCondition("'"+meant+"' in oldObject.metadata.labels"))

			for _, object := range []*Object{both, unmeant, unselected} {
				cluster.Delete(ctx, object)
			}

			Expect(webhook.Reviews(both)).To(HaveLen(1))
			Expect(webhook.Reviews(unmeant)).To(BeEmpty())
			Expect(webhook.Reviews(unselected)).To(BeEmpty())
		})

	Specify("a mutating one that answers a delete with a patch fails it, and nothing changes",
		Behavior("admission.patch-is-refused", Observed, Hook,
			Source("k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go")), func(ctx SpecContext) {
			patched := cluster.Create(ctx, fixtures.ConfigMap("patched"))
			allowed := cluster.Create(ctx, fixtures.ConfigMap("allowed"))
			webhook := cluster.CreateMutatingWebhook(ctx)
			webhook.Patch(patched)

			Expect(cluster.TryDelete(ctx, patched)).To(HaveStatusCode(http.StatusInternalServerError))
			Expect(cluster.Get(ctx, patched)).To(BeUnchangedSince(patched))

			cluster.Delete(ctx, allowed)
			Expect(webhook.Reviews(allowed)).To(HaveLen(1), "a mutating webhook is asked about deletes")
		})
})
