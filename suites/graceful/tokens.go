package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

// serviceAccounts is the page of the documentation on the lifetime of tokens.
const serviceAccounts = "reference/access-authn-authz/service-accounts-admin"

var _ = Describe("Bound tokens", func() {
	cluster := UseCluster()

	// runningAs sets the ServiceAccount of a pod.
	runningAs := func(account *Object) ObjectOption {
		return WithField(account.GetName(), "spec", "serviceAccountName")
	}
	// becomes waits until the API server accepts or rejects tokens, because it processes changes with a delay.
	becomes := func(ctx SpecContext, tokens *users.Tokens, accepted bool, when string) {
		GinkgoHelper()
		Eventually(ctx, tokens.Authenticated).WithPolling(100*time.Millisecond).Should(Equal(accepted), when)
	}

	// refusedAfter removes an object to which tokens of a ServiceAccount are bound, and expects that they are refused, even if a namesake exists.
	refusedAfter := func(ctx SpecContext, create func() (account, bound *Object)) {
		GinkgoHelper()
		account, object := create()
		tokens := users.RequestTokens(ctx, cluster, account, object)
		becomes(ctx, tokens, true, "accepted while the object exists")

		cluster.Delete(ctx, object, Grace(0))
		becomes(ctx, tokens, false, "refused after the object is removed")

		account, namesake := create()
		becomes(ctx, users.RequestTokens(ctx, cluster, account, namesake), true, "a token of the new object is accepted")
		becomes(ctx, tokens, false, "the old token is refused while an object of the same name exists")
	}

	Specify("A token must be refused after its ServiceAccount, Pod or Secret is removed, even if an object with the "+
		"same name and another uid exists.",
		Behavior("graceful.token-of-removed-object", Core, Source(serviceAccounts),
			Promise("If the referenced object no longer exists (or its `metadata.uid` does not match), the request will not be authenticated.")),
		func(ctx SpecContext) {
			var account *Object
			refusedAfter(ctx, func() (_, bound *Object) {
				account = cluster.Create(ctx, fixtures.ServiceAccount())
				return account, account
			})
			refusedAfter(ctx, func() (_, pod *Object) {
				return account, cluster.Create(ctx, fixtures.GhostBoundPod("pod"), runningAs(account))
			})
			refusedAfter(ctx, func() (_, secret *Object) { return account, cluster.Create(ctx, fixtures.Secret("secret")) })
		})

	Specify("A token that is bound to a Node must be refused after the Node is removed, even if a Node with the same name and another uid exists.",
		Behavior("graceful.token-of-removed-node", Core, SimulatedNode, Since("1.33"), Source(serviceAccounts),
			Promise("Node (can be used to auto-revoke a token when its Node is deleted; creating new node-bound tokens is GA in v1.33+)")),
		func(ctx SpecContext) {
			account := cluster.Create(ctx, fixtures.ServiceAccount())
			refusedAfter(ctx, func() (_, node *Object) { return account, cluster.Create(ctx, fixtures.Node("node")) })
		})

	Specify("A token bound to a terminating pod must be accepted during the grace period and refused 60 seconds after "+
		"deletionTimestamp, even if a finalizer holds the pod.",
		Behavior("graceful.token-of-terminating-pod", Core, SimulatedNode, Slow, Source(serviceAccounts),
			Promise("for any instant that is 60 seconds (or more) after the `.metadata.deletionTimestamp` date, authentication with that token "+
				"would fail.")), func(ctx SpecContext) {
			account := cluster.Create(ctx, fixtures.ServiceAccount())
			node := cluster.Create(ctx, fixtures.Node("node")) // a pod without a node is deleted faster
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), OnNode(node.GetName()), runningAs(account), Held)
			tokens := users.RequestTokens(ctx, cluster, account, pod)

			ends := Require(cluster.TryDelete(ctx, pod, Grace(2))).Object.GetDeletionTimestamp().Time
			Expect(tokens.Authenticated(ctx)).To(BeTrue(), "accepted while the pod terminates")
			cluster.Outlast(ctx, ends.Add(30*time.Second))
			Expect(tokens.Authenticated(ctx)).To(BeTrue(), "accepted 30 s after the grace period")

			cluster.Outlast(ctx, ends.Add(time.Minute))
			becomes(ctx, tokens, false, "refused 60 s after the grace period")
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveFinalizers(Hold), HaveDeletionTimestamp(&metav1.Time{Time: ends})))
		})
})
