package graceful

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Pods with several containers", func() {
	cluster := UseCluster()

	Specify("The containers of a deleted pod are stopped in parallel.",
		Behavior("graceful.node.in-parallel", Observed, Node, Source("pkg/kubelet/kuberuntime/kuberuntime_container.go")), func(ctx SpecContext) {
			const slowly = "sleep 8; exit 0"
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: slowly},
				fixtures.Container{Name: "two", OnTerm: slowly},
				fixtures.Container{Name: "three", OnTerm: slowly}))

			cluster.Delete(ctx, pod, Grace(60))

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			for name, container := range terminations {
				for other, end := range terminations {
					Expect(container.SignaledAt).To(BeTemporally("<", end.FinishedAt),
						"%s got SIGTERM before %s had ended", name, other)
				}
			}
		})

	Specify("The sidecar containers of a deleted pod must be stopped after the main containers, in the reverse order of their definition.",
		Behavior("graceful.node.sidecars-last", Core, Node, Since("1.33"), Source(podLifecycle),
			Promise("The sidecar containers will be terminated in the reverse order they are defined in the Pod spec.")), func(ctx SpecContext) {
			const slowly = "sleep 2; exit 0"
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "first-sidecar", OnTerm: slowly, Sidecar: true},
				fixtures.Container{Name: "second-sidecar", OnTerm: slowly, Sidecar: true},
				fixtures.Container{Name: "main", OnTerm: slowly}))

			cluster.Delete(ctx, pod, Grace(60))

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			Expect(terminations["second-sidecar"].SignaledAt).To(BeTemporally(">=", terminations["main"].FinishedAt),
				"the last sidecar receives SIGTERM after the main container has ended")
			Expect(terminations["first-sidecar"].SignaledAt).To(BeTemporally(">=", terminations["second-sidecar"].FinishedAt),
				"the first sidecar receives SIGTERM after the second has ended")
		})

	Specify("Sidecar containers that remain when the grace period expires must be terminated simultaneously.",
		Behavior("graceful.node.sidecars-grace-over", Core, Node, Since("1.33"), Source(podLifecycle),
			Promise("In this case, all remaining containers in the Pod will be terminated simultaneously with a short grace period.")), func(ctx SpecContext) {
			// It is the first sidecar's turn when the second is killed, 2 s after the grace period is over. At that time it must be
			// running.
			const port = 8080
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "first-sidecar", OnTerm: fixtures.Reach("127.0.0.1", port) + " && exit 7; exit 0", Sidecar: true},
				fixtures.Container{Name: "second-sidecar", Background: fixtures.Serve(port), Sidecar: true},
				fixtures.Container{Name: "main", PreStop: fixtures.Shell("sleep 300")}))

			cluster.Delete(ctx, pod, Grace(3))

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			Expect(terminations["first-sidecar"].ExitCode).To(BeEquivalentTo(7), "the first sidecar received SIGTERM before the second ended")
			Expect(terminations["second-sidecar"].SignaledAt).NotTo(BeZero(), "the second sidecar received SIGTERM")
		})

	Specify("The time that a sidecar container waits for its turn must count toward the grace period of the pod.",
		Behavior("graceful.node.sidecars-share-grace", Core, Node, Since("1.33"), Source(podLifecycle),
			Promise("If the grace period expires before the termination process is complete, the Pod may enter forced termination.")), func(ctx SpecContext) {
			// Of 14 s the main container takes 7, so that 7 s are left to the sidecar, and not 14. Halves leave a slow node the most
			// time to be slow in.
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "sidecar", Sidecar: true}, fixtures.Container{Name: "main", OnTerm: "sleep 7; exit 0"}))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(14))).Object

			sidecar := workloads.AwaitTermination(ctx, cluster, pod)["sidecar"]
			Expect(sidecar.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the sidecar")
			Expect(sidecar.FinishedAt).To(fallAt(terminating.GetDeletionTimestamp().Time), "the sidecar is killed when the grace period expires")
			Expect(sidecar.FinishedAt.Sub(sidecar.SignaledAt)).To(BeNumerically("<", 13*time.Second), "waiting counts toward the grace period")
		})

	Specify("The preStop hooks of sidecar containers start at once, and SIGTERM is sent only after the main containers have ended.",
		Behavior("graceful.node.sidecars-pre-stop", Observed, Node, Since("1.33"),
			Source("pkg/kubelet/kuberuntime/kuberuntime_container.go")), func(ctx SpecContext) {
			const untilHooksRan = "until test -e /notes/first -a -e /notes/second; do sleep 0.1; done; sleep 1; exit 0"
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "first-sidecar", PreStop: fixtures.Shell("touch /notes/first"), OnTerm: "exit 0", Sidecar: true},
				fixtures.Container{Name: "second-sidecar", PreStop: fixtures.Shell("touch /notes/second"), OnTerm: "exit 0", Sidecar: true},
				fixtures.Container{Name: "main", OnTerm: untilHooksRan}))

			cluster.Delete(ctx, pod, Grace(30))

			terminations := workloads.AwaitTermination(ctx, cluster, pod)
			Expect(terminations["main"].ExitCode).To(BeEquivalentTo(0), "the hooks completed before the main container ended")
			for _, sidecar := range []string{"first-sidecar", "second-sidecar"} {
				Expect(terminations[sidecar].SignaledAt).To(BeTemporally(">=", terminations["main"].FinishedAt),
					"%s receives SIGTERM after the main container has ended", sidecar)
			}
		})

	Specify("The exit codes of sidecar containers must not affect the final phase of a deleted pod.",
		Behavior("graceful.node.sidecars-phase", Extended, Node, Since("1.33"), Source("KEP-753")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "sidecar", OnTerm: "exit 3", Sidecar: true}, fixtures.Container{Name: "main", OnTerm: "exit 0"}))

			cluster.Delete(ctx, pod)

			workloads.AwaitDeletion(ctx, cluster, pod, workloads.HaveTerminatedContainers(), HavePhase(corev1.PodSucceeded))
		})

	Specify("A pod that is deleted during initialization is removed before its grace period expires, and its started "+
		"sidecar containers are stopped.",
		Behavior("graceful.node.sidecars-in-init", Observed, Node, Since("1.33"),
			Source("pkg/kubelet/kuberuntime/kuberuntime_termination_order.go")), func(ctx SpecContext) {
			// The init container has no readiness probe: it ends when the sidecar has received SIGTERM. The later sidecar never starts.
			pod := cluster.Create(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "sidecar", OnTerm: "touch /notes/stopped; exit 7", Sidecar: true},
				fixtures.Container{Name: "init", First: "until test -e /notes/stopped; do sleep 0.1; done; exit 3", Init: true},
				fixtures.Container{Name: "later-sidecar", Sidecar: true},
				fixtures.Container{Name: "main"}))
			workloads.AwaitStart(ctx, cluster, pod, workloads.HaveRunning("init"))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(50))).Object

			sidecar := HaveJSONPath("{.status.initContainerStatuses[0].state.terminated.exitCode}", "7")
			workloads.AwaitDeletion(ctx, cluster, pod, sidecar, HavePhase(corev1.PodFailed))
			Expect(cluster.Now(ctx)).To(BeTemporally("<", terminating.GetDeletionTimestamp().Time), "the pod is removed before its grace period expires")
			Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, workloads.HaveStarted("main"))))
		})

	Specify("The ephemeral containers of a deleted pod must receive SIGTERM.",
		Behavior("graceful.node.ephemeral-containers", Core, Node, Source(podLifecycle), Promise(signaled)), func(ctx SpecContext) {
			// Ephemeral containers have no probes, so the probe of the main container reports this one as ready.
			pod := workloads.StartPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", Background: fixtures.ServeNotes(), Readiness: fixtures.NoteProbe("ready-debugger"), OnTerm: "exit 0",
			}))
			debug(ctx, cluster, pod, fixtures.EphemeralContainer(fixtures.Container{Name: "debugger", OnTerm: "exit 7"}))
			workloads.AwaitReady(ctx, cluster, pod)

			cluster.Delete(ctx, pod)

			Expect(workloads.AwaitTermination(ctx, cluster, pod)["debugger"].ExitCode).To(BeEquivalentTo(7), "SIGTERM ended the ephemeral container")
		})

	Specify("The containers of a terminating pod must not be restarted, even with the restartPolicy Always.",
		Behavior("graceful.node.not-restarted", Core, Node, Source(podLifecycle),
			Promise("as soon as the kubelet sees that a Pod has been marked as terminating ..., the kubelet begins the local Pod shutdown process.")),
		func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 3"},
				fixtures.Container{Name: "two", OnTerm: "sleep 5; exit 0"}), WithField("Always", "spec", "restartPolicy"))

			cluster.Delete(ctx, pod, Grace(60))

			for name, container := range workloads.AwaitTermination(ctx, cluster, pod) {
				Expect(container.Restarts).To(BeZero(), "%s is not restarted", name)
			}
		})

	Specify("The restart rules of containers must not restart a container of a terminating pod.",
		Behavior("graceful.node.restart-rules", Extended, Node, Since("1.36"), Source(podLifecycle),
			Promise("as soon as the kubelet sees that a Pod has been marked as terminating ..., the kubelet begins the local Pod shutdown process.")),
		func(ctx SpecContext) {
			created := cluster.TryCreate(ctx, fixtures.NodePod("pod",
				fixtures.Container{Name: "one", OnTerm: "exit 3", Rules: fixtures.OnExit(3, corev1.ContainerRestartRuleActionRestart)},
				fixtures.Container{Name: "two", OnTerm: "exit 4", Rules: fixtures.OnExit(4, corev1.ContainerRestartRuleActionRestartAllContainers)},
				fixtures.Container{Name: "three", OnTerm: "sleep 5; exit 0"}))
			stored := HaveJSONPath("{.spec.containers[*].restartPolicyRules[*].action}", "Restart RestartAllContainers")
			if ok, _ := stored.Match(created.Object); created.StatusCode == http.StatusUnprocessableEntity || !ok {
				Skip("the server does not store these restart rules (ContainerRestartRules, RestartAllContainersOnContainerExits)")
			}
			pod := created.Object
			workloads.AwaitReady(ctx, cluster, pod)

			cluster.Delete(ctx, pod, Grace(60))

			for name, container := range workloads.AwaitTermination(ctx, cluster, pod) {
				Expect(container.Restarts).To(BeZero(), "%s is not restarted", name)
			}
			Expect(cluster.History(pod)).To(HaveObserved(Matching(pod, And(BeTerminating(), HavePhase(corev1.PodFailed)))))
		})
})

// debug adds an ephemeral container to a pod.
func debug(ctx SpecContext, cluster *Cluster, pod *Object, container map[string]any) {
	GinkgoHelper()
	image, _ := container["image"].(string)
	container["image"] = fixtures.WithRegistry(image, cluster.Session().ImageRegistry)
	body := map[string]any{"spec": map[string]any{"ephemeralContainers": []any{container}}}
	cluster.Patch(ctx, pod, types.StrategicMergePatchType, body, "ephemeralcontainers")
}
