package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/events"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// killed is the exit code of a process that SIGKILL ended.
const killed = 137

// fallAt matches a time at or after a given time, within the tolerance for a busy node.
func fallAt(moment time.Time) OmegaMatcher {
	return And(BeTemporally(">=", moment), BeTemporally("<=", moment.Add(nodes.Tolerance)))
}

var _ = Describe("Termination on a node", func() {
	cluster := UseCluster()

	Specify("The containers of a deleted pod must receive SIGTERM, and the pod must be removed before its grace period "+
		"expires when they exit early.",
		Behavior("graceful.node.early-exit", Core, Node, Source(podLifecycle), Promise(signaled)), func(ctx SpecContext) {
			// After the removal of another pod, whatever the kubelet does once a minute and might wait for is most of a minute away, and a
			// slow node needs a part of that for the removal.
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 7"}))
			awaitLaterTermination(ctx, cluster, nodes.Of(pod))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(50))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(cluster.Now(ctx)).To(BeTemporally("<", terminating.GetDeletionTimestamp().Time), "the pod is removed before its grace period expires")
			Expect(main.SignaledAt).NotTo(BeZero(), "the container received SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(7), "the container exited by itself")
		})

	Specify("A container that ignores SIGTERM must be killed when the grace period expires, neither earlier nor much later.",
		Behavior("graceful.node.kill-after-grace", Core, Node, Source(podLifecycle),
			Promise("Once the grace period has expired, the KILL signal is sent to any remaining processes")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithGrace(300))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(8))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.SignaledAt).NotTo(BeZero(), "the container received SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			graceEnds := terminating.GetDeletionTimestamp().Time
			Expect(main.FinishedAt).To(fallAt(graceEnds), "the container is killed when the grace period expires")
		})

	Specify("A delete with a shorter grace period must shorten the termination of a pod that is already terminating on its node.",
		Behavior("graceful.node.grace-shortened", Core, Node, PodNetwork, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			// A kubelet does not interrupt the stop of a container (kubernetes/kubernetes#113606), so only what it learns before that
			// counts. The hook delays the stop until the gate is gone, which the kubelet learns after the grace period.
			gate := workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
			pod := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PostStart: fixtures.Shell(fixtures.WaitAtGate(workloads.AddressOf(gate))),
			}), WithGrace(300), OnNode(nodes.Of(gate)))
			workloads.AwaitReady(ctx, cluster, gate)
			cluster.Delete(ctx, pod)
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(gate))

			cluster.Delete(ctx, pod, Grace(2))

			cluster.Delete(ctx, gate)
			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.SignaledAt).NotTo(BeZero(), "the container received SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.FinishedAt.Sub(main.SignaledAt)).To(BeNumerically("<=", 2*time.Second+nodes.Tolerance),
				"not much later than the shortened grace period")
		})

	Specify("The last state of a pod before its DELETED event shows every container as terminated.",
		Behavior("graceful.node.last-state", Observed, Node, Source("pkg/kubelet/status/status_manager.go")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 0"}, fixtures.Container{Name: "two", OnTerm: "sleep 1; exit 3"}))

			cluster.Delete(ctx, pod)

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			Expect(cluster.History(pod)).To(HaveObserved(Terminating(pod), Matching(pod, workloads.HaveTerminatedContainers()), Deleted(pod)))
			Expect(terminations["one"].ExitCode).To(BeEquivalentTo(0))
			Expect(terminations["two"].ExitCode).To(BeEquivalentTo(3))
		})

	Specify("A delete with grace period 0 must remove a running pod immediately, and the containers of the pod must still be stopped.",
		Behavior("graceful.node.grace-zero", Core, Node, PodNetwork, Source(podLifecycle), Promise(containersEnd)), func(ctx SpecContext) {
			const port = 8080
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Server("main", port)), WithGrace(4))
			watcher := workloads.RunPod(ctx, cluster, fixtures.NodePod("watcher", fixtures.Watcher("main", workloads.AddressOf(pod), port)))

			cluster.Delete(ctx, pod, Grace(0))

			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			Eventually(ctx, cluster.History(pod, watcher)).Should(
				HaveObserved(Deleted(pod), Matching(watcher, HavePhase(corev1.PodSucceeded))))
		})

	Specify("The containers of a running pod that is deleted with grace period 0 must receive SIGTERM, and must be killed after a small grace "+
		"period.",
		Behavior("graceful.node.forced-small-grace", Core, Node, Source(podLifecycle),
			Promise("On the node, Pods that are set to terminate immediately will still be given a small grace period before being force killed.")),
		func(ctx SpecContext) {
			// A finalizer keeps the pod, so that its kubelet reports how its container ended.
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithGrace(60), Held)

			cluster.Delete(ctx, pod, Grace(0))

			workloads.AwaitStart(ctx, cluster, pod, workloads.HaveTerminatedContainers())
			main := workloads.TerminationsOf(cluster, pod)["main"]
			Expect(main.SignaledAt).NotTo(BeZero(), "the container received SIGTERM")
			Expect(main.FinishedAt.Sub(main.SignaledAt)).To(BeNumerically("<=", 2*time.Second+nodes.Tolerance), "the grace period is small")
		})

	Specify("A terminating pod keeps its address and its network until its containers have ended.",
		Behavior("graceful.node.network", Observed, Node, PodNetwork, Source("pkg/kubelet/kuberuntime/kuberuntime_manager.go")), func(ctx SpecContext) {
			const port = 8080
			peer := workloads.StartPod(ctx, cluster, fixtures.NodePod("peer", fixtures.Server("main", port)), WithGrace(2))
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", First: fixtures.UntilReachable(workloads.AddressOf(peer), port),
				OnTerm: fixtures.Reach(workloads.AddressOf(peer), port) + " && " + fixtures.Ring() + " && exit 7; exit 1",
			}))
			listener := cluster.Create(ctx, fixtures.NodePod("listener", fixtures.Listener("main", workloads.AddressOf(pod))))

			cluster.Delete(ctx, pod, Grace(60))

			workloads.AwaitReady(ctx, cluster, listener)
			Expect(workloads.AwaitTermination(ctx, cluster, pod)["main"].ExitCode).To(BeEquivalentTo(7), "the container reached another pod, and was reached")
			Expect(cluster.History(pod)).To(HaveObserved(Matching(pod, And(BeTerminating(), workloads.HaveTerminatedContainers(),
				HaveJSONPath("{.status.podIP}", workloads.AddressOf(pod))))))
		})

	Specify("A pod created under the name of a pod deleted with grace period 0 must not be affected by the termination of the old pod.",
		Behavior("graceful.node.recreated-pod", Core, Node, PodNetwork, Source(podLifecycle), Promise(nameIsFree)), func(ctx SpecContext) {
			const port = 8080
			old := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Server("main", port)), WithGrace(4))
			later := workloads.RunPod(ctx, cluster, fixtures.NodePod("later", fixtures.Container{Name: "main"}), OnNode(nodes.Of(old)), WithGrace(6))

			cluster.Delete(ctx, old, Grace(0))
			namesake := cluster.Create(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", First: fixtures.WhileReachable(workloads.AddressOf(old), port),
			}), OnNode(nodes.Of(old)))
			cluster.Delete(ctx, later)

			workloads.AwaitReady(ctx, cluster, namesake) // after the containers of the old one have terminated
			workloads.AwaitDeletion(ctx, cluster, later) // which terminates after the old one, by the same steps
			Expect(cluster.Get(ctx, namesake)).To(And(BeSameObjectAs(namesake), Not(BeTerminating()), workloads.HaveRunning("main")))
			Expect(cluster.History(namesake)).NotTo(HaveObserved(Matching(namesake, workloads.HaveTerminatedContainers())))
		})

	Specify("A container has 2 seconds to stop when the grace period is 1 second.",
		Behavior("graceful.node.minimum-grace", Observed, Node,
			Source("pkg/kubelet/kuberuntime/kuberuntime_container.go")), func(ctx SpecContext) {
			// Each container measures the time since SIGTERM itself, so delays of a busy node do not matter. A container that gets 1 s
			// cannot finish, one that gets 2 s can, and at least one of three does.
			const longerThanOne = "sleep 1.4; exit 7"
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: longerThanOne},
				fixtures.Container{Name: "two", OnTerm: longerThanOne},
				fixtures.Container{Name: "three", OnTerm: longerThanOne},
				fixtures.Container{Name: "stays"}))

			cluster.Delete(ctx, pod, Grace(1))

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			Expect(terminations).To(ContainElement(HaveField("ExitCode", BeEquivalentTo(7))), "a container exited within 2 s")
			Expect(terminations["stays"].ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container that did not exit")
		})

	Specify("A deleted pod must end as Succeeded when all its containers exit with 0, and otherwise as Failed.",
		Behavior("graceful.node.phase", Core, Node, Source(podLifecycle), Promise(terminalPhase)), func(ctx SpecContext) {
			const succeeds, fails = "exit 0", "exit 3"
			succeeded := cluster.Create(ctx, fixtures.NodePod("succeeded",
				fixtures.Container{Name: "one", OnTerm: succeeds}, fixtures.Container{Name: "two", OnTerm: succeeds}))
			failed := cluster.Create(ctx, fixtures.NodePod("failed",
				fixtures.Container{Name: "one", OnTerm: succeeds}, fixtures.Container{Name: "two", OnTerm: fails}))
			shot := cluster.Create(ctx, fixtures.NodePod("shot", fixtures.Container{Name: "main"}), WithGrace(2))
			for _, pod := range []*Object{succeeded, failed, shot} {
				workloads.AwaitReady(ctx, cluster, pod)
				cluster.Delete(ctx, pod)
			}

			workloads.AwaitDeletion(ctx, cluster, succeeded, workloads.HaveTerminatedContainers(), HavePhase(corev1.PodSucceeded))
			workloads.AwaitDeletion(ctx, cluster, failed, workloads.HaveTerminatedContainers(), HavePhase(corev1.PodFailed))
			workloads.AwaitDeletion(ctx, cluster, shot, workloads.HaveTerminatedContainers(), HavePhase(corev1.PodFailed))
		})

	Specify("The kubelet reports an event Killing for each container of a deleted pod.",
		Behavior("graceful.node.killing-events", Observed, Node, Source("pkg/kubelet/kuberuntime/kuberuntime_container.go")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 0"}, fixtures.Container{Name: "two", OnTerm: "exit 0"}))

			cluster.Delete(ctx, pod)

			events.Await(ctx, cluster, pod, "Killing", "spec.containers{one}", "spec.containers{two}")
		})

	Specify("A pod that its kubelet ends because of its active deadline must have the grace period of its spec, must remain as Failed, and a "+
		"delete must remove it.",
		Behavior("graceful.node.failed-by-kubelet", Core, Node, Source(podLifecycle),
			Promise("For failed Pods, the API objects remain in the cluster's API until a human or controller process explicitly removes them.")),
		func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "slow", OnTerm: "sleep 4; exit 7"}, fixtures.Container{Name: "stubborn"}), WithGrace(10))
			cluster.Update(ctx, pod, WithField(int64(1), "spec", "activeDeadlineSeconds"))
			workloads.AwaitStart(ctx, cluster, pod, And(HavePhase(corev1.PodFailed), workloads.HaveTerminatedContainers()))
			terminations := workloads.TerminationsOf(cluster, pod)
			Expect(terminations["slow"].ExitCode).To(BeEquivalentTo(7), "the container exited by itself")
			Expect(terminations["stubborn"].ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container that did not exit")
			Expect(terminations["stubborn"].FinishedAt.Sub(terminations["stubborn"].SignaledAt)).To(BeNumerically("<", 26*time.Second),
				"the container does not have the default grace period of 30 s")
			awaitLaterTermination(ctx, cluster, nodes.Of(pod))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), HavePhase(corev1.PodFailed), Not(BeTerminating())))

			cluster.Delete(ctx, pod)

			AwaitDeleted(ctx, cluster, pod)
		})

	Specify("A container whose image defines a stop signal must receive that signal instead of SIGTERM.",
		Behavior("graceful.node.stop-signal", Extended, Node, Source(podLifecycle),
			Promise("Many container runtimes respect the `STOPSIGNAL` value defined in the container image")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", Image: fixtures.StopSignalImage, Signal: "QUIT", OnTerm: "exit 7",
			}))

			cluster.Delete(ctx, pod)

			Expect(workloads.AwaitTermination(ctx, cluster, pod)["main"].ExitCode).To(BeEquivalentTo(7), "SIGQUIT ended the container")
		})

	Specify("The readiness probes of a terminating pod must continue, and a failing probe must make the pod not ready.",
		Behavior("graceful.node.readiness-probes", Core, Node, Source("concepts/workloads/pods/probes"),
			Promise("Readiness probes run on the container during its whole lifecycle.")), func(ctx SpecContext) {
			// After the first probe that fails, the kubelet has 20 s to write the condition. Where probes run a command, the container ends 1 s
			// after the seventh, between two of them, because a runtime that is starting a process in a container can miss the container's end.
			const asked = "$(grep -c /serves /notes/asked)"
			asking := cluster.Create(ctx, fixtures.NodePod("asking", fixtures.Container{
				Name: "main", First: "touch /notes/serves", Background: fixtures.ServeNotes(), Readiness: fixtures.NoteProbe("serves"),
				OnTerm: "rm /notes/serves; before=" + asked + "; until [ " + asked + " -gt $before ]; do sleep 0.1; done; sleep 20; exit 0",
			}))
			running := cluster.Create(ctx, fixtures.NodePod("running", fixtures.Container{
				Name: "main", First: "touch /notes/serves /notes/failed", Readiness: &corev1.Probe{
					PeriodSeconds: 3, TimeoutSeconds: 10, FailureThreshold: 1,
					ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
						Command: []string{"sh", "-c", "test -e /notes/serves || { echo >> /notes/failed; exit 1; }"},
					}},
				},
				OnTerm: "rm /notes/serves; until [ $(wc -l < /notes/failed) -ge 7 ]; do sleep 0.1; done; sleep 1; exit 0",
			}))
			for _, pod := range []*Object{asking, running} {
				workloads.AwaitReady(ctx, cluster, pod)
				cluster.Delete(ctx, pod, Grace(60))
			}

			for _, pod := range []*Object{asking, running} {
				workloads.AwaitDeletion(ctx, cluster, pod, BeTerminating(), HaveConditionFalse(string(corev1.PodReady)), workloads.HaveRunning("main"))
			}
		})

	Specify("The liveness probes of a terminating pod stop.",
		Behavior("graceful.node.liveness-probes", Observed, Node, Source("pkg/kubelet/kubelet.go")), func(ctx SpecContext) {
			// The container counts its liveness probes for 4 s after the last probe has ended.
			const asked = "$(grep -c /alive /notes/asked)"
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", First: "touch /notes/alive", Background: fixtures.ServeNotes(), Liveness: fixtures.NoteProbe("alive"),
				OnTerm: "sleep 3; before=" + asked + "; sleep 4; echo $((" + asked + " - before)) >> /dev/termination-log; exit 0",
			}))

			cluster.Delete(ctx, pod, Grace(60))

			Expect(workloads.AwaitTermination(ctx, cluster, pod)["main"].Message).To(Or(Equal("0"), Equal("1")),
				"liveness probes after termination began")
		})

	Specify("A terminating pod that a finalizer holds must be in a terminal phase after its containers have stopped.",
		Behavior("graceful.node.held-by-finalizer", Core, Node, Source(podLifecycle), Promise(terminalPhase)), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}), Held)

			cluster.Delete(ctx, pod)

			ended := And(BeTerminating(), workloads.HaveTerminatedContainers(), HavePhase(corev1.PodSucceeded, corev1.PodFailed))
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Terminating(pod), Matching(pod, ended)))
			Expect(cluster.Get(ctx, pod)).To(And(ended, HaveFinalizers(Hold)))

			cluster.Release(ctx, pod)
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
		})

	Specify("The endpoint of a terminating pod on a node must be terminating and not ready.",
		Behavior("graceful.node.endpoints", Core, Node, KCM, Source(podLifecycle), Promise(notReady)), func(ctx SpecContext) {
			cluster.Watch(ctx, fixtures.EndpointSlice())
			service := cluster.Create(ctx, fixtures.ServiceFor("service", Domain+"/serves", "endpoints"))
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{Name: "main"}),
				WithLabel(Domain+"/serves", "endpoints"))
			slice := cluster.AwaitDependents(ctx, service, 1)[0]
			Eventually(ctx, cluster.History(slice)).Should(HaveObserved(Matching(slice, haveEndpoint(pod, endpointReady))))

			cluster.Delete(ctx, pod, Grace(10))

			Eventually(ctx, cluster.History(slice)).Should(HaveObserved(
				Matching(slice, haveEndpoint(pod, endpointReady)), Matching(slice, haveEndpoint(pod, endpointTerminating))))
		})
})
