package cascade

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/aggregation"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

var _ = Describe("Garbage collection and unreachable APIs", Serial, func() {
	cluster := UseCluster()

	// unreachable creates an APIService without a server, and waits until it is unavailable.
	unreachable := func(ctx SpecContext) *Object {
		GinkgoHelper()
		broken := fixtures.APIService(cluster.Group(), cluster.Namespace())
		broken = cluster.Create(ctx, broken, Named(broken.GetName()))
		Eventually(ctx, cluster.History(broken)).Should(HaveObserved(Matching(broken, HaveConditionFalse("Available"))))
		return broken
	}

	Specify("An unreachable aggregated API does not prevent the garbage collector from handling other kinds, including new ones.",
		Behavior("cascade.discovery.broken-aggregated-api", Observed, GC, CRD, Admin, Disruptive, Slow, Source("kubernetes#60037")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			broken := unreachable(ctx)

			// A collector that has discovered a kind defined later has also queried this API.
			defined := "defined." + cluster.Group()
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(defined))
			definitions.AwaitCollectorDiscovery(ctx, cluster, fixtures.CustomResource(defined, "any"))
			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, child)).Should(HaveObserved(Deleted(owner), Deleted(child)))
			Expect(cluster.Get(ctx, broken)).To(HaveConditionFalse("Available"))
		})

	Specify("A garbage collector that starts while an aggregated API is unreachable still handles other kinds.",
		Behavior("cascade.discovery.broken-aggregated-api-at-start", Observed, GC, Admin, Disruptive, Source("kubernetes#60037")), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			secret := cluster.Create(ctx, fixtures.Secret("secret"), OwnedBy(owner))
			cluster.AwaitCollectorSync(ctx, child, secret) // fails early without a collector
			start := components.Stop(ctx, cluster, components.ControllerManager)
			broken := unreachable(ctx)

			// A controller manager that starts discovers all kinds, which fails for this group.
			start(ctx)
			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(owner, child)).WithTimeout(cluster.Session().AtLeast(collectorStarts)).Should(HaveObserved(Deleted(owner), Deleted(child)))
			Eventually(ctx, cluster.History(secret)).Should(HaveObserved(Deleted(secret)))
			Expect(cluster.Get(ctx, broken)).To(HaveConditionFalse("Available"))
		})

	Specify("The API server does not describe an aggregated API after its APIService is removed.",
		Behavior("cascade.discovery.removed-aggregated-api", Observed, Admin, Hook, Disruptive, Disturbs(KCM, Namespace), Disturbs(Kubectl),
			BreaksDiscovery, Since("1.29"),
			Source("k8s.io/kube-aggregator/pkg/apiserver/apiserver.go")), func(ctx SpecContext) {
			api := aggregation.Register(ctx, cluster)
			api.Serve(ctx)
			path := "apis/" + cluster.Group() + "/v1"
			definitions.AwaitPaths(ctx, cluster, definitions.OpenAPI, ContainElement(path))

			cluster.Delete(ctx, api.Service)

			definitions.AwaitPaths(ctx, cluster, definitions.OpenAPI, Not(ContainElement(path)))
		})

	Specify("Discovery lists the kind of a CustomResourceDefinition after the APIService of an aggregated API for its group and version is removed.",
		Behavior("cascade.discovery.definition-after-aggregated-api", Observed, CRD, Admin, Disruptive, Disturbs(KCM, Namespace), Disturbs(Kubectl),
			BreaksDiscovery, Since("1.30"),
			Source("k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go")), func(ctx SpecContext) {
			// The API server registers definitions, too. Where its own APIService follows at once, it can miss that there was none in between, and
			// keeps to the removed one.
			denied := denyRegistration(ctx, cluster)
			broken := unreachable(ctx)
			definition := cluster.Create(ctx, fixtures.CustomResourceDefinition(cluster.Group()))
			Eventually(ctx, cluster.History(definition)).Should(HaveObserved(Matching(definition, HaveCondition("Established"))))
			kind := fixtures.CustomResource(cluster.Group(), "any")
			definitions.AwaitListed(ctx, cluster, kind, HaveOccurred())
			Eventually(ctx, denied).WithPolling(PolicyPolling).Should(HaveStatusCode(http.StatusUnprocessableEntity), "the API server enforces the policy")

			cluster.Delete(ctx, broken)

			definitions.AwaitListed(ctx, cluster, kind, Succeed())
		})
})

// denyRegistration creates a policy that denies the APIService with which the API server registers version v1 of the spec's group for
// definitions, and returns a dry-run creation of it: it is denied when the policy is enforced.
func denyRegistration(ctx context.Context, cluster *Cluster) (creation func() Response) {
	GinkgoHelper()
	const automanaged = "kube-aggregator.kubernetes.io/automanaged"
	manifest := fixtures.APIService(cluster.Group(), cluster.Namespace())
	policy := cluster.Create(ctx, fixtures.ValidatingAdmissionPolicy("registration"),
		WithField([]any{map[string]any{
			"apiGroups": []any{"apiregistration.k8s.io"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"apiservices"},
		}}, "spec", "matchConstraints", "resourceRules"),
		WithField([]any{map[string]any{"key": automanaged, "operator": "Exists"}}, "spec", "matchConstraints", "objectSelector", "matchExpressions"),
		WithField([]any{map[string]any{"expression": fmt.Sprintf("object.metadata.name != '%s'", manifest.GetName())}}, "spec", "validations"))
	cluster.Create(ctx, fixtures.ValidatingAdmissionPolicyBinding("registration"), WithField(policy.GetName(), "spec", "policyName"))
	return func() Response {
		return cluster.DryRun().TryCreate(ctx, manifest, Named(manifest.GetName()), WithLabel(automanaged, "true"))
	}
}
