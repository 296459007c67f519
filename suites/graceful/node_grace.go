package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// killed is the exit code of a process that SIGKILL ended.
const killed = 137

var _ = Describe("a pod on a real node", func() {
	cluster := UseCluster()

	Specify("containers get SIGTERM; when they exit early the pod goes before its grace is over",
		Behavior("graceful.node.term-then-gone", Core, Node, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 7"}))

			terminating := cluster.Delete(ctx, pod, Grace(120)).Object

			main := cluster.AwaitTermination(ctx, pod)["main"]
			Expect(cluster.Now(ctx)).To(BeTemporally("<", terminating.GetDeletionTimestamp().Time), "the pod goes before its grace is over")
			Expect(main.SignaledAt).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(7), "the container ended by itself")
		})

	Specify("a container that ignores SIGTERM is killed when the grace terminations, not before and not much later",
		Behavior("graceful.node.kill-after-grace", Core, Node, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithGrace(300))

			terminating := cluster.Delete(ctx, pod, Grace(8)).Object

			main := cluster.AwaitTermination(ctx, pod)["main"]
			Expect(main.SignaledAt).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			graceEnds := terminating.GetDeletionTimestamp().Time
			Expect(main.FinishedAt).To(BeTemporally(">=", graceEnds), "not before the grace terminations")
			Expect(main.FinishedAt).To(BeTemporally("<=", graceEnds.Add(NodeTolerance)), "not much later than the grace terminations")
		})

	Specify("shortening the grace of a terminating pod reaches the node",
		Behavior("graceful.node.shortened-midway", Core, Node,
			Source("reference/kubernetes-api/common-definitions/object-meta")), func(ctx SpecContext) {
			// A kubelet does not interrupt the stop of a container (kubernetes/kubernetes#113606): what it hears before it
			// stops one counts. The hook keeps it from that until the gate is gone, of which it hears later than of the grace.
			gate := cluster.StartPod(ctx, fixtures.NodePod("gate", fixtures.Gate("main")))
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PostStart: fixtures.Shell(fixtures.WaitAtGate(AddressOf(gate))),
			}), WithGrace(300), OnNode(NodeOf(gate)))
			cluster.AwaitReady(ctx, gate)
			cluster.Delete(ctx, pod)
			cluster.AwaitKubelet(ctx, NodeOf(gate))

			cluster.Delete(ctx, pod, Grace(2))

			cluster.Delete(ctx, gate)
			main := cluster.AwaitTermination(ctx, pod)["main"]
			Expect(main.SignaledAt).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.FinishedAt.Sub(main.SignaledAt)).To(BeNumerically("<=", 2*time.Second+NodeTolerance),
				"not much later than the shortened grace terminations")
		})

	Specify("the last state before DELETED shows every container terminated",
		Behavior("graceful.node.last-state", Observed, Node, Source("pkg/kubelet/status/status_manager.go")), func(ctx SpecContext) {
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 0"}, fixtures.Container{Name: "two", OnTerm: "sleep 1; exit 3"}))

			cluster.Delete(ctx, pod)

			terminations := cluster.AwaitTermination(ctx, pod)
			Expect(cluster.History(pod)).To(HaveObserved(Terminating(pod), Matching(pod, HaveTerminatedContainers()), Deleted(pod)))
			Expect(terminations["one"].ExitCode).To(BeEquivalentTo(0))
			Expect(terminations["two"].ExitCode).To(BeEquivalentTo(3))
		})

	Specify("grace 0 removes the object at once, and the containers still end",
		Behavior("graceful.node.forced", Core, Node, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			const port = 8080
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Server("main", port)), WithGrace(4))
			watcher := cluster.RunPod(ctx, fixtures.NodePod("watcher", fixtures.Watcher("main", AddressOf(pod), port)))

			cluster.Delete(ctx, pod, Grace(0))

			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			Eventually(ctx, cluster.History(pod, watcher)).Should(
				HaveObserved(Deleted(pod), Matching(watcher, HavePhase(corev1.PodSucceeded))))
		})

	Specify("a finalizer keeps the object while its containers are stopped; its phase becomes terminal",
		Behavior("graceful.node.held-by-finalizer", Core, Node,
			Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}), Held)

			cluster.Delete(ctx, pod)

			ended := And(BeTerminating(), HaveTerminatedContainers(), HavePhase(corev1.PodSucceeded, corev1.PodFailed))
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Terminating(pod), Matching(pod, ended)))
			Expect(cluster.Get(ctx, pod)).To(And(ended, HaveFinalizers(Hold)))

			cluster.Release(ctx, pod)
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
		})

	Specify("a terminating pod's endpoint is terminating and not ready",
		Behavior("graceful.node.endpoints", Core, Node,
			Source("tutorials/services/pods-and-endpoint-termination-flow")), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.EndpointSlice())
			service := cluster.Create(ctx, fixtures.ServiceFor("service", Domain+"/serves", "endpoints"))
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}),
				WithLabel(Domain+"/serves", "endpoints"))
			slice := cluster.AwaitDependents(ctx, service, 1)[0]
			Eventually(ctx, cluster.History(slice)).Should(HaveObserved(Matching(slice, HaveEndpoint(pod, EndpointReady))))

			cluster.Delete(ctx, pod, Grace(10))

			Eventually(ctx, cluster.History(slice)).Should(HaveObserved(
				Matching(slice, HaveEndpoint(pod, EndpointReady)), Matching(slice, HaveEndpoint(pod, EndpointTerminating))))
		})
})

var _ = Describe("a pod on a node that is lost", Serial, func() {
	cluster := UseCluster()

	Specify("with the kubelet stopped the pod stays, terminating, beyond its grace; when it returns the deletion completes",
		Behavior("graceful.node.lost-node", Core, Node, Source("concepts/workloads/pods/pod-lifecycle")), func(ctx SpecContext) {
			pod := cluster.RunPod(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			cluster.StopComponent(ctx, Kubelet)

			terminating := cluster.Delete(ctx, pod, Grace(2)).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(2)))

			cluster.StartComponent(ctx, Kubelet)
			cluster.AwaitTermination(ctx, pod)
		})
})
