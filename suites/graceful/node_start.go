package graceful

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Pods that have not started", func() {
	cluster := UseCluster()

	Specify("A pod deleted while pulling an image or running an init container must end as Failed without starting its main containers.",
		Behavior("graceful.node.never-started", Core, Node, Source(podLifecycle), Promise(terminalPhase)), func(ctx SpecContext) {
			pulling := cluster.Create(ctx, fixtures.NodePod("pulling", fixtures.Container{Name: "main", Image: fixtures.MissingImage}))
			initialising := cluster.Create(ctx, fixtures.NodePod("initialising",
				fixtures.Container{Name: "init", OnTerm: "exit 0", Init: true}, fixtures.Container{Name: "main"}), WithGrace(3))
			workloads.AwaitStart(ctx, cluster, pulling, nodes.HaveStartTime())
			workloads.AwaitStart(ctx, cluster, initialising, workloads.HaveRunning("init"))

			cluster.Delete(ctx, pulling)
			cluster.Delete(ctx, initialising)

			for _, pod := range []*Object{pulling, initialising} {
				workloads.AwaitDeletion(ctx, cluster, pod, HavePhase(corev1.PodFailed))
				Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, workloads.HaveStarted("main"))))
			}
		})

	Specify("A deleted pod with a volume that was never mounted must be removed.",
		Behavior("graceful.node.missing-volume", Core, Node, Source(podLifecycle), Promise(deletesComplete)), func(ctx SpecContext) {
			missing := map[string]any{"name": "notes", "configMap": map[string]any{"name": "missing"}}
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithField([]any{missing}, "spec", "volumes"))
			workloads.AwaitStart(ctx, cluster, pod, nodes.HaveStartTime())

			cluster.Delete(ctx, pod)

			workloads.AwaitDeletion(ctx, cluster, pod)
		})
})

var _ = Describe("Static pods", func() {
	cluster := UseCluster()

	Specify("A deleted mirror pod of a static pod must be recreated with a new uid, and its containers must continue to run.",
		Behavior("graceful.node.mirror-pod-recreated", Core, Node, Source("tasks/configure-pod-container/static-pod"),
			Promise("If you try to use `kubectl` to delete the mirror Pod from the API server, the kubelet _doesn't_ remove the static Pod")), func(ctx SpecContext) {
			static := nodes.RunStaticPod(ctx, cluster, fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			containers := workloads.ContainersOf(cluster.Get(ctx, mirror))

			cluster.Delete(ctx, mirror)

			another := nodes.AwaitMirrorPods(ctx, cluster, static, 2)[1]
			Expect(another).NotTo(BeSameObjectAs(mirror))
			workloads.AwaitReady(ctx, cluster, another)
			Expect(workloads.ContainersOf(cluster.Get(ctx, another))).To(Equal(containers), "the containers continue to run")
		})

	Specify("The containers of a static pod whose manifest is removed must receive SIGTERM, and its mirror pod must be removed.",
		Behavior("graceful.node.static-pod-removed", Core, Node, PodNetwork, Source("tasks/configure-pod-container/static-pod"),
			Promise("The running kubelet periodically scans the configured directory ... for changes and adds/removes Pods as files appear/disappear in "+
				"this directory.")), func(ctx SpecContext) {
			static := nodes.RunStaticPod(ctx, cluster, fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: fixtures.Ring() + "; exit 0"}))
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			listener := cluster.Create(ctx, fixtures.NodePod("listener", fixtures.Listener("main", workloads.AddressOf(cluster.Get(ctx, mirror)))))

			nodes.EndStaticPod(ctx, cluster, static)

			workloads.AwaitReady(ctx, cluster, listener)
			Eventually(ctx, cluster.History(mirror)).Should(HaveObserved(Deleted(mirror)))
		})

	Specify("A static pod whose manifest returns while its containers terminate must run again.",
		Behavior("graceful.node.static-pod-recreated", Core, Node, PodNetwork, Source("tasks/configure-pod-container/static-pod"),
			Promise("The running kubelet periodically scans the configured directory ... for changes and adds/removes Pods as files appear/disappear in "+
				"this directory.")), func(ctx SpecContext) {
			manifest := fixtures.StaticPod("static", fixtures.Container{Name: "main", OnTerm: fixtures.Ring() + "; sleep 3; exit 0"})
			WithField("Always", "spec", "restartPolicy")(manifest)
			static := nodes.RunStaticPod(ctx, cluster, manifest)
			mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
			workloads.AwaitReady(ctx, cluster, mirror)
			containers := workloads.ContainersOf(cluster.Get(ctx, mirror))
			listener := workloads.StartPod(ctx, cluster, fixtures.NodePod("listener", fixtures.Listener("main", workloads.AddressOf(cluster.Get(ctx, mirror)))))
			nodes.EndStaticPod(ctx, cluster, static)
			workloads.AwaitReady(ctx, cluster, listener) // the container has received SIGTERM

			nodes.RunStaticPod(ctx, cluster, manifest)

			nodes.AwaitMirrorPod(ctx, cluster, static, And(
				HaveCondition(string(corev1.PodReady)), WithTransform(workloads.ContainersOf, Not(Equal(containers)))))
		})
})
