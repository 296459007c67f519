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

	It("containers get SIGTERM; when they exit early the pod goes before its grace is over",
		Behavior("graceful.node.term-then-gone", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 7"}))

			terminating := cluster.Delete(ctx, pod, Grace(120)).Object

			main := cluster.AwaitEnd(ctx, pod)["main"]
			Expect(cluster.Now(ctx)).To(BeTemporally("<", terminating.GetDeletionTimestamp().Time), "the pod goes before its grace is over")
			Expect(main.Terminated).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(7), "the container ended by itself")
		})

	It("a container that ignores SIGTERM is killed when the grace ends, not before and not much later",
		Behavior("graceful.node.kill-after-grace", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithGrace(300))

			terminating := cluster.Delete(ctx, pod, Grace(8)).Object

			main := cluster.AwaitEnd(ctx, pod)["main"]
			Expect(main.Terminated).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			graceEnds := terminating.GetDeletionTimestamp().Time
			Expect(main.Finished).To(BeTemporally(">=", graceEnds), "not before the grace ends")
			Expect(main.Finished).To(BeTemporally("<=", graceEnds.Add(Late)), "not much later than the grace ends")
		})

	It("shortening the grace of a terminating pod reaches the node",
		Behavior("graceful.node.shortened-midway", Core, Node), func(ctx SpecContext) {
			// A kubelet does not interrupt the stop of a container (kubernetes/kubernetes#113606): what it hears before it
			// stops one counts. The hook keeps it from that until the gate is gone, of which it hears later than of the grace.
			gate := cluster.Launch(ctx, fixtures.NodePod("gate", fixtures.Gate("main")))
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PostStart: fixtures.Shell(fixtures.WaitAtGate(AddressOf(gate))),
			}), WithGrace(300), OnNode(NodeOf(gate)))
			cluster.AwaitReady(ctx, gate)
			cluster.Delete(ctx, pod)
			cluster.AwaitKubelet(ctx, NodeOf(gate))

			cluster.Delete(ctx, pod, Grace(2))

			cluster.Delete(ctx, gate)
			main := cluster.AwaitEnd(ctx, pod)["main"]
			Expect(main.Terminated).NotTo(BeZero(), "the container noted SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.Finished.Sub(main.Terminated)).To(BeNumerically("<=", 2*time.Second+Late),
				"not much later than the shortened grace ends")
		})

	It("the last state before DELETED shows every container terminated",
		Behavior("graceful.node.last-state", Observed, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 0"}, fixtures.Container{Name: "two", OnTerm: "sleep 1; exit 3"}))

			cluster.Delete(ctx, pod)

			ends := cluster.AwaitEnd(ctx, pod)
			Expect(cluster.History(pod)).To(Show(Terminating(pod), Seen(pod, HaveEnded()), Deleted(pod)))
			Expect(ends["one"].ExitCode).To(BeEquivalentTo(0))
			Expect(ends["two"].ExitCode).To(BeEquivalentTo(3))
		})

	It("grace 0 removes the object at once, and the containers still end",
		Behavior("graceful.node.forced", Core, Node), func(ctx SpecContext) {
			const port = 8080
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Server("main", port)), WithGrace(4))
			watcher := cluster.Run(ctx, fixtures.NodePod("watcher", fixtures.Watcher("main", AddressOf(pod), port)))

			cluster.Delete(ctx, pod, Grace(0))

			Expect(cluster.Find(ctx, pod)).To(BeGone())
			Eventually(ctx, cluster.History(pod, watcher)).Should(
				Show(Deleted(pod), Seen(watcher, HavePhase(corev1.PodSucceeded))))
		})

	It("a finalizer keeps the object while its containers are stopped; its phase becomes terminal",
		Behavior("graceful.node.held-by-finalizer", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}), Held)

			cluster.Delete(ctx, pod)

			ended := And(BeTerminating(), HaveEnded(), HavePhase(corev1.PodSucceeded, corev1.PodFailed))
			Eventually(ctx, cluster.History(pod)).Should(Show(Terminating(pod), Seen(pod, ended)))
			Expect(cluster.Get(ctx, pod)).To(And(ended, HaveFinalizers(Hold)))

			cluster.Release(ctx, pod)
			Eventually(ctx, cluster.History(pod)).Should(Show(Deleted(pod)))
		})

	It("a terminating pod's endpoint is terminating and not ready",
		Behavior("graceful.node.endpoints", Core, Node), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.EndpointSlice())
			service := cluster.Create(ctx, fixtures.ServiceFor("service", Domain+"/serves", "endpoints"))
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}),
				WithLabel(Domain+"/serves", "endpoints"))
			Eventually(ctx, cluster.DependentsOf(service)).Should(HaveLen(1))
			slices, err := cluster.DependentsOf(service)()
			Expect(err).NotTo(HaveOccurred())
			Eventually(ctx, cluster.History(slices...)).Should(Show(Seen(slices[0], HaveEndpoint(pod, Ready))))

			cluster.Delete(ctx, pod, Grace(10))

			Eventually(ctx, cluster.History(slices...)).Should(
				Show(Seen(slices[0], HaveEndpoint(pod, Ready)), Seen(slices[0], HaveEndpoint(pod, NotReadyAndTerminating))))
		})
})

var _ = Describe("a pod on a node that is lost", Serial, func() {
	cluster := UseCluster()

	It("with the kubelet stopped the pod stays, terminating, beyond its grace; when it returns the deletion completes",
		Behavior("graceful.node.lost-node", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			cluster.Stop(ctx, Kubelet)

			terminating := cluster.Delete(ctx, pod, Grace(2)).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(Carry(pod), BeTerminating(), HaveGracePeriod(2)))

			cluster.Start(ctx, Kubelet)
			cluster.AwaitEnd(ctx, pod)
		})
})
