package permission

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

// impersonation is the page of the documentation on impersonation.
const impersonation = "reference/access-authn-authz/user-impersonation"

// The service accounts that are impersonated. Their names are fixed, so that deploy/rbac can list them.
const deleterAccount, powerlessAccount = "deletion-conformance-deleter", "deletion-conformance-powerless"

var _ = Describe("Deletes on behalf of another user", func() {
	cluster := UseCluster()

	// deleter makes a service account that may delete, and returns its username. Impersonation does not require that the account exists.
	deleter := func(ctx SpecContext) string {
		GinkgoHelper()
		username := users.AccountName(cluster.Namespace(), deleterAccount)
		users.AsUser(ctx, cluster, "deleter", username, users.May("configmaps", "delete"))
		return username
	}
	// impersonates is permission to impersonate service accounts by name.
	impersonates := func(group, verb string, accounts ...string) rbacv1.PolicyRule {
		rule := users.May("serviceaccounts", verb)
		rule.APIGroups, rule.ResourceNames = []string{group}, accounts
		return rule
	}

	Specify("A delete on behalf of another user must be refused with 403 without permission to impersonate the user, and must "+
		"otherwise be authorized with the permissions of that user.",
		Behavior("permission.impersonation", Core, AnyResource, Admin, Source(impersonation),
			Promise("Request is evaluated, authorization acts on impersonated user info.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			deleting := deleter(ctx)

			impersonating := users.OnBehalfOf(ctx, cluster, "impersonator", deleting,
				impersonates("", "impersonate", deleterAccount, powerlessAccount))
			powerless := impersonating.As(ctx, users.AccountName(cluster.Namespace(), powerlessAccount))
			users.As(ctx, cluster, "outside", users.May("configmaps", "delete"))
			outside := impersonating.As(ctx, users.Name(users.May("configmaps", "delete")))

			for _, refused := range []*Cluster{powerless, outside} {
				Expect(refused.TryDelete(ctx, object)).To(HaveStatusCode(http.StatusForbidden))
				Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
			}
			Expect(impersonating.TryDelete(ctx, object)).To(BeAccepted())
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})

	Specify("With constrained impersonation, a delete on behalf of another user must be refused with 403 unless impersonation is "+
		"allowed for the verb delete.",
		Behavior("permission.constrained-impersonation", Extended, AnyResource, Admin, Since("1.36"), Source("KEP-5284"),
			Promise("An impersonator who impersonates another user is required to have the additional permissions to impersonate on certain "+
				"group resources and verbs.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			deleting := deleter(ctx)
			who := impersonates("authentication.k8s.io", "impersonate:serviceaccount", deleterAccount)
			on := func(verb string) rbacv1.PolicyRule {
				return users.May("configmaps", "impersonate-on:serviceaccount:"+verb)
			}

			reading := users.OnBehalfOf(ctx, cluster, "reader", deleting, who, on("get"))
			Expect(reading.TryDelete(ctx, object)).To(HaveStatusCode(http.StatusForbidden))
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))

			allowed := users.OnBehalfOf(ctx, cluster, "impersonator", deleting, who, on("delete"))
			if allowed.TryDelete(ctx, object, DryRun).StatusCode == http.StatusForbidden {
				Skip("the API server does not constrain impersonation: the feature gate ConstrainedImpersonation is off")
			}
			Expect(allowed.TryDelete(ctx, object)).To(BeAccepted())
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
		})
})
