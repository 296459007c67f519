package permission

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/users"
)

var _ = Describe("Nodes", func() {
	cluster := UseCluster()

	Specify("With NodeRestriction, a node must be allowed to delete its own pods, and must be refused with 403 for other pods.",
		Behavior("permission.node-restriction", Extended, Admin,
			Source("reference/access-authn-authz/admission-controllers"),
			Promise("Such kubelets will only be allowed to modify their own `Node` API object, and only modify `Pod` API objects that "+
				"are bound to their node.")),
		func(ctx SpecContext) {
			other := cluster.Create(ctx, fixtures.GhostBoundPod("other"))
			unscheduled := cluster.Create(ctx, fixtures.UnscheduledPod("unscheduled"))
			// Held, because the node's name is not unique: the pod garbage collector may have missed the node for another run already.
			own := cluster.Create(ctx, fixtures.UnscheduledPod("own"), OnNode(users.OwnNode), Held)
			node := users.AsNode(ctx, cluster, users.May("pods", "create", "delete"))
			// Only another rule of the plugin shows whether it is enabled.
			if node.TryCreate(ctx, fixtures.GhostBoundPod("mine")).Err == nil {
				Skip("the admission plugin NodeRestriction is off: a node may create any pod")
			}

			// The plugin learns about pods in order, and about this one last.
			Eventually(ctx, func() Response { return node.TryDelete(ctx, own, DryRun) }).Should(BeAccepted())
			for _, pod := range []*Object{other, unscheduled} {
				Expect(node.TryDelete(ctx, pod)).To(HaveStatusCode(http.StatusForbidden))
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
			}
			Expect(node.TryDelete(ctx, own, Grace(0))).To(BeAccepted())
			Expect(cluster.Get(ctx, own)).To(BeTerminating())
		})
})
