package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// orphanedByNode bounds how long the pod garbage collector takes: it looks every 20 s, and takes a pod 40 s after it
// first missed its node (pkg/controller/podgc).
const orphanedByNode = 2 * time.Minute

var _ = Describe("the pod garbage collector", func() {
	cluster := UseCluster()

	Specify("it removes a pod that is bound to a node that does not exist",
		Behavior("graceful.orphaned-by-node", Core, KCM, Slow, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			Eventually(ctx, cluster.History(pod)).WithTimeout(orphanedByNode).Should(HaveObserved(Added(pod), Deleted(pod)))
		})
})
