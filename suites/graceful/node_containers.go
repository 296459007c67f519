package graceful

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("a pod of several containers on a real node", func() {
	cluster := UseCluster()

	Specify("the containers of a pod are stopped side by side",
		Behavior("graceful.node.in-parallel", Core, Node, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			const slowly = "sleep 8; exit 0"
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: slowly},
				fixtures.Container{Name: "two", OnTerm: slowly},
				fixtures.Container{Name: "three", OnTerm: slowly}))

			cluster.Delete(ctx, pod, Grace(60))

			terminations := cluster.AwaitTermination(ctx, pod)
			for name, container := range terminations {
				for other, end := range terminations {
					Expect(container.SignaledAt).To(BeTemporally("<", end.FinishedAt),
						"%s got SIGTERM before %s had ended", name, other)
				}
			}
		})

	Specify("restartable init containers stop after the main containers, in reverse order",
		Behavior("graceful.node.sidecars-last", Extended, Node, Since("1.33"), Source("KEP-753")), func(ctx SpecContext) {
			const slowly = "sleep 2; exit 0"
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "first-sidecar", OnTerm: slowly, Sidecar: true},
				fixtures.Container{Name: "second-sidecar", OnTerm: slowly, Sidecar: true},
				fixtures.Container{Name: "main", OnTerm: slowly}))

			cluster.Delete(ctx, pod, Grace(60))

			terminations := cluster.AwaitTermination(ctx, pod)
			Expect(terminations["second-sidecar"].SignaledAt).To(BeTemporally(">=", terminations["main"].FinishedAt),
				"SIGTERM reaches the last sidecar when the main container has ended")
			Expect(terminations["first-sidecar"].SignaledAt).To(BeTemporally(">=", terminations["second-sidecar"].FinishedAt),
				"SIGTERM reaches the first sidecar when the second has ended")
		})
})
