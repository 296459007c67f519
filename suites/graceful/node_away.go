package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
	"github.com/deletion-conformance/deletion-conformance/framework/nodes"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Pods on unreachable nodes", Serial, func() {
	cluster := UseCluster()

	// watched runs a pod that ignores SIGTERM, with this grace period, and a watcher on its node that succeeds when it can no longer reach it.
	const grace, port = 4, 8080
	watched := func(ctx SpecContext) (pod, watcher *Object) {
		GinkgoHelper()
		components.WhileRunning(ctx, cluster, components.AnyKubelet, func() {
			pod = workloads.StartPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Server("main", port)), WithGrace(grace))
			watcher = workloads.RunPod(ctx, cluster, fixtures.NodePod("watcher", fixtures.Watcher("main", workloads.AddressOf(pod), port)), OnNode(nodes.Of(pod)))
		})
		return pod, watcher
	}

	// running runs a pod. Its kubelet is not stopped until then.
	running := func(ctx SpecContext, manifest *Object, options ...ObjectOption) (pod *Object) {
		GinkgoHelper()
		components.WhileRunning(ctx, cluster, components.AnyKubelet, func() { pod = workloads.RunPod(ctx, cluster, manifest, options...) })
		return pod
	}

	Specify("A deleted pod on a node with a stopped kubelet must remain beyond its grace period, and must be removed "+
		"after the kubelet has started again.",
		Behavior("graceful.node.kubelet-stopped", Core, Node, Disruptive, Disturbs(Node), StopsKubelet, Source(taintsAndTolerations),
			Promise("The decision to delete the pods cannot be communicated to the kubelet until communication with the API server is re-established.")),
		func(ctx SpecContext) {
			pod := running(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
			start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(pod)))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(2))).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(2)))

			start(ctx)
			workloads.AwaitTermination(ctx, cluster, pod)
		})

	Specify("The containers of a pod that was deleted with grace period 0 while the kubelet was stopped must run until the kubelet starts "+
		"again, and must then be stopped.",
		Behavior("graceful.node.removed-while-kubelet-stopped", Core, Node, PodNetwork, Disruptive, Disturbs(Node), StopsKubelet,
			Source(podLifecycle), Promise(containersEnd)), func(ctx SpecContext) {
			pod, watcher := watched(ctx)
			start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(pod)))

			cluster.Delete(ctx, pod, Grace(0))
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			cluster.Outlast(ctx, cluster.Now(ctx).Add(grace*time.Second))

			restarted := cluster.Now(ctx)
			start(ctx)
			Eventually(ctx, cluster.History(watcher)).Should(HaveObserved(Matching(watcher, HavePhase(corev1.PodSucceeded))))
			Expect(workloads.TerminationsOf(cluster, watcher)["main"].SignaledAt).To(BeTemporally(">=", restarted),
				"the pod could be reached until the kubelet started again")
		})

	Specify("The containers of a running pod must continue to run while its kubelet is restarted.",
		Behavior("graceful.node.restart-keeps-running", Core, Node, Disruptive, Disturbs(Node), StopsKubelet, Source(podLifecycle),
			Promise("If you restart the kubelet, Pods (and their containers) continue to run even during the restart.")), func(ctx SpecContext) {
			pod := running(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main", OnTerm: "exit 7"}), WithField("Always", "spec", "restartPolicy"))

			start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(pod)))
			start(ctx)
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(pod))
			deleted := cluster.Now(ctx)
			cluster.Delete(ctx, pod)

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.SignaledAt).To(BeTemporally(">=", deleted), "the container received SIGTERM after the delete")
			Expect(main.Restarts).To(BeZero(), "the container is not restarted")
		})

	Specify("A kubelet that is restarted while the containers of a deleted pod terminate must give them the full grace period again, and "+
		"must not restart them.",
		Behavior("graceful.node.restart-midway", Core, Node, Disruptive, Disturbs(Node), StopsKubelet, Source(podLifecycle),
			Promise("If the kubelet or the container runtime's management service is restarted while waiting for processes to terminate, the cluster "+
				"retries from the start")), func(ctx SpecContext) {
			const whole = 12 * time.Second
			pod := running(ctx, fixtures.NodePod("pod", fixtures.Container{Name: "main"}), WithGrace(int64(whole/time.Second)),
				WithField("Always", "spec", "restartPolicy"))
			stopping := components.BeforeStop(ctx, cluster, components.AnyKubelet)
			terminating := Require(cluster.TryDelete(ctx, pod)).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(-whole/2))

			start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(pod)))
			stopping()
			stopped := cluster.Now(ctx)
			start(ctx)

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.FinishedAt).To(BeTemporally(">=", stopped.Add(whole)), "the container has the full grace period again")
			Expect(main.Restarts).To(BeZero(), "the container is not restarted")
		})

	Specify("A deleted pod must remain beyond its grace period while the container runtime is stopped and cannot end its containers, and "+
		"must be removed after the runtime has started again.",
		Behavior("graceful.node.runtime-away", Core, Node, PodNetwork, Disruptive, Disturbs(Node), StopsRuntime, Source(forceDelete),
			Promise("Graceful deletion is safe and will ensure that the Pod shuts down gracefully before the kubelet deletes the name from the apiserver.")), func(ctx SpecContext) {
			var pod *Object
			components.WhileRunning(ctx, cluster, components.AnyRuntime, func() {
				gate := workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
				pod = workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
					Name: "main", OnTerm: fixtures.WaitAtGate(workloads.AddressOf(gate)),
				}), WithGrace(300), OnNode(nodes.Of(gate)))
				cluster.Delete(ctx, pod)
				workloads.AwaitReady(ctx, cluster, gate) // the container has received SIGTERM
			})

			start := components.Stop(ctx, cluster, components.Runtime(nodes.Of(pod)))
			terminating := Require(cluster.TryDelete(ctx, pod, Grace(1))).Object
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(pod))
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(1)))

			start(ctx)
			workloads.AwaitDeletion(ctx, cluster, pod, workloads.HaveTerminatedContainers())
		})

	Specify("The containers of a static pod whose manifest is removed while the container runtime is stopped end after the runtime has started "+
		"again.",
		Behavior("graceful.node.static-pod-removed-while-runtime-away", Observed, Node, PodNetwork, Disruptive, Disturbs(Node), StopsRuntime,
			Source("pkg/kubelet/pod_workers.go")), func(ctx SpecContext) {
			// A kubelet that has just looked at a pod waits for the runtime before it tries to stop the pod. Of three, one tries at once.
			var watcher *Object
			container, statics, node := fixtures.Container{Name: "main", OnTerm: "exit 0"}, []*Object{}, ""
			components.WhileRunning(ctx, cluster, components.AnyRuntime, func() {
				for _, name := range []string{"one", "two", "three"} {
					manifest := fixtures.StaticPod(name, fixtures.Server("main", port))
					WithGrace(grace)(manifest)
					static := nodes.RunStaticPod(ctx, cluster, manifest)
					mirror := nodes.AwaitMirrorPods(ctx, cluster, static, 1)[0]
					workloads.AwaitReady(ctx, cluster, mirror)
					address := workloads.AddressOf(cluster.Get(ctx, mirror))
					container.First += fixtures.UntilReachable(address, port) + "\n"
					container.Background += fixtures.WhileReachable(address, port) + "; "
					statics, node = append(statics, static), nodes.Of(mirror)
				}
				container.Background += "kill -TERM 1"
				watcher = workloads.RunPod(ctx, cluster, fixtures.NodePod("watcher", container), OnNode(node))
			})
			start := components.Stop(ctx, cluster, components.Runtime(node))

			for _, static := range statics {
				nodes.EndStaticPod(ctx, cluster, static)
			}
			nodes.AwaitKubelet(ctx, cluster, node)

			start(ctx)
			Eventually(ctx, cluster.History(watcher)).WithTimeout(cluster.Session().AtLeast(2 * time.Minute)).Should(
				HaveObserved(Matching(watcher, HavePhase(corev1.PodSucceeded))))
		})

	// restarted deletes pods while their kubelet is stopped, and then starts it: one with running containers and the phase Failed, one without
	// containers and the phase Succeeded, and one that the kubelet rejects, as it would the second one.
	restarted := func(ctx SpecContext) (ended, completed, rejected *Object) {
		GinkgoHelper()
		ended = running(ctx, fixtures.NodePod("ended", fixtures.Container{Name: "main", OnTerm: "exit 0"}))
		start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(ended)))
		inadmissible := func(name string) *Object {
			return cluster.Create(ctx, fixtures.NodePod(name, fixtures.Container{Name: "main"}),
				OnNode(nodes.Of(ended)), WithField(map[string]any{Domain + "/missing": "true"}, "spec", "nodeSelector"))
		}
		completed, rejected = inadmissible("completed"), inadmissible("rejected")
		for _, pod := range []*Object{ended, completed, rejected} {
			cluster.Delete(ctx, pod)
		}
		workloads.SetPhase(ctx, cluster, ended, string(corev1.PodFailed))
		workloads.SetPhase(ctx, cluster, completed, string(corev1.PodSucceeded))
		start(ctx)
		return ended, completed, rejected
	}

	Specify("A deleted pod that the restarted kubelet finds in a terminal phase, or rejects, must be removed.",
		Behavior("graceful.node.terminal-while-kubelet-stopped", Core, Node, Disruptive, Disturbs(Node), StopsKubelet, Source(podLifecycle),
			Promise("The kubelet triggers forcible removal of the Pod object from the API server, by setting grace period to 0 (immediate deletion).")),
		func(ctx SpecContext) {
			ended, completed, rejected := restarted(ctx)

			workloads.AwaitDeletion(ctx, cluster, ended)
			workloads.AwaitDeletion(ctx, cluster, completed)
			workloads.AwaitDeletion(ctx, cluster, rejected, HavePhase(corev1.PodFailed))
		})

	Specify("A restarted kubelet does not change the terminal phase of a deleted pod that it would reject, or whose containers end otherwise.",
		Behavior("graceful.node.terminal-phase-kept", Observed, Node, Disruptive, Disturbs(Node), StopsKubelet, Source("pkg/kubelet/kubelet_pods.go")),
		func(ctx SpecContext) {
			ended, completed, _ := restarted(ctx)

			workloads.AwaitDeletion(ctx, cluster, ended)
			workloads.AwaitDeletion(ctx, cluster, completed)
			Expect(cluster.History(completed)).NotTo(HaveObserved(Matching(completed, HavePhase(corev1.PodFailed))))
			Expect(cluster.History(ended)).NotTo(HaveObserved(Matching(ended, HavePhase(corev1.PodSucceeded))))
		})

	Specify("The container of a pod whose PersistentVolumeClaim is terminating is restarted even after a restart of the kubelet.",
		Behavior("graceful.node.terminating-claim", Observed, Node, KCM, Volume, PodNetwork, Disruptive, Disturbs(Node), StopsKubelet,
			Source("pkg/kubelet/volumemanager/populator/desired_state_of_world_populator.go")), func(ctx SpecContext) {
			claim := cluster.Create(ctx, fixtures.PersistentVolumeClaim("claim"))
			cluster.Create(ctx, fixtures.PersistentVolume("volume", claim), WithField("/tmp", "spec", "hostPath", "path"))
			Eventually(ctx, cluster.History(claim)).Should(HaveObserved(Matching(claim, HavePhase(corev1.ClaimBound))))
			var gate, pod *Object
			components.WhileRunning(ctx, cluster, components.AnyKubelet, func() {
				gate = workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
				pod = workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
					Name: "main", Background: fixtures.WaitAtGate(workloads.AddressOf(gate)) + "; kill -TERM 1", OnTerm: "exit 7",
				}), OnNode(nodes.Of(gate)), WithField("Always", "spec", "restartPolicy"), mounting(claim))
				workloads.AwaitReady(ctx, cluster, gate)
			})

			cluster.Delete(ctx, claim)
			start := components.Stop(ctx, cluster, components.Kubelet(nodes.Of(pod)))
			start(ctx)
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(pod))

			components.WhileRunning(ctx, cluster, components.AnyKubelet, func() {
				cluster.Delete(ctx, gate)
				workloads.AwaitStart(ctx, cluster, pod, And(workloads.HaveRunning("main"), HaveJSONPath("{.status.containerStatuses[0].restartCount}", "1")))
			})
			Expect(cluster.Get(ctx, claim)).To(And(BeSameObjectAs(claim), BeTerminating()))
		})
})
