package graceful

import (
	"fmt"
	"net/http"
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

var _ = Describe("PreStop hooks", func() {
	cluster := UseCluster()

	Specify("A preStop hook must complete before SIGTERM is sent, and its duration must count toward the grace period.",
		Behavior("graceful.node.pre-stop-first", Core, Node, Source(lifecycleHook),
			Promise("This grace period applies to the total time it takes for both the `PreStop` hook to execute and for the Container to stop "+
				"normally.")), func(ctx SpecContext) {
			// The hook takes 14 of 28 s. SIGTERM follows when it has left its note, and SIGKILL after the rest of the grace period: at most
			// 14 s instead of 28 s. Halves leave the most tolerance for a slow node.
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name:    "main",
				PreStop: fixtures.Shell("sleep 14; echo hook ran > /notes/hook"),
				OnTerm:  "cat /notes/hook >> /dev/termination-log",
			}))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(28))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.Message).To(Equal("hook ran"), "the hook completed before SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.FinishedAt).To(BeTemporally(">=", terminating.GetDeletionTimestamp().Time),
				"not before the grace period expires")
			Expect(main.FinishedAt.Sub(main.SignaledAt)).To(BeNumerically("<", 26*time.Second), "the duration of the hook counts toward the grace period")
		})

	Specify("A container whose preStop hook outlasts the grace period must receive SIGTERM and must be killed 2 seconds later.",
		Behavior("graceful.node.pre-stop-overrun", Core, Node, Source(podLifecycle),
			Promise("If the `preStop` hook is still running after the grace period expires, the kubelet requests a small, one-off grace period "+
				"extension of 2 seconds.")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PreStop: fixtures.Shell("sleep 300"),
			}))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(3))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			windowEnds := terminating.GetDeletionTimestamp().Add(2 * time.Second)
			// Without the extension the container would be killed immediately, even on a slow node.
			Expect(main.SignaledAt).NotTo(BeZero(), "the container received SIGTERM")
			Expect(main.ExitCode).To(BeEquivalentTo(killed), "SIGKILL ended the container")
			Expect(main.FinishedAt).To(fallAt(windowEnds), "the container is killed 2 s after the grace period")
		})

	Specify("A preStop httpGet must be requested before SIGTERM is sent.",
		Behavior("graceful.node.pre-stop-http", Core, Node, Source(lifecycleHook),
			Promise("HTTP - Executes an HTTP request against a specific endpoint on the Container.")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", Background: fixtures.ServeNotes(), PreStop: fixtures.RequestNote("hook"),
				OnTerm: "grep -o /hook /notes/asked >> /dev/termination-log; exit 0",
			}))

			cluster.Delete(ctx, pod)

			Expect(workloads.AwaitTermination(ctx, cluster, pod)["main"].Message).To(ContainSubstring("/hook"), "the hook was requested before SIGTERM")
		})

	Specify("A failing preStop hook must not stop the deletion of a pod, and must cause a FailedPreStopHook event.",
		Behavior("graceful.node.pre-stop-failure", Core, Node, Source(lifecycleHook),
			Promise("If a handler fails for some reason, it broadcasts an event. ... for `PreStop`, this is the `FailedPreStopHook` event.")),
		func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name:    "main",
				PreStop: fixtures.Shell("echo hook ran > /notes/hook; exit 1"),
				OnTerm:  "cat /notes/hook >> /dev/termination-log; exit 0",
			}))

			cluster.Delete(ctx, pod)

			Expect(workloads.AwaitTermination(ctx, cluster, pod)["main"].Message).To(Equal("hook ran"), "the hook ran before SIGTERM")
			events.Await(ctx, cluster, pod, "FailedPreStopHook")
		})

	Specify("The kubelet runs a preStop hook even if the pod is deleted with grace period 0.",
		Behavior("graceful.node.pre-stop-grace-zero", Observed, Node, Source("pkg/kubelet/pod_workers.go")), func(ctx SpecContext) {
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", Background: fixtures.ServeNotes(), PreStop: fixtures.RequestNote("hook"),
				OnTerm: "grep -o /hook /notes/asked >> /dev/termination-log; exit 0",
			}), WithGrace(0), Held)

			cluster.Delete(ctx, pod)
			workloads.AwaitStart(ctx, cluster, pod, And(HaveGracePeriod(0), workloads.HaveTerminatedContainers()))

			Expect(workloads.TerminationsOf(cluster, pod)["main"].Message).To(ContainSubstring("/hook"), "the hook was requested before SIGTERM")
		})

	Specify("A delete with a shorter grace period does not interrupt a preStop hook that runs.",
		Behavior("graceful.node.pre-stop-shortened", Observed, Node, PodNetwork, Source("kubernetes#127339")), func(ctx SpecContext) {
			gate := workloads.StartPod(ctx, cluster, fixtures.NodePod("gate", fixtures.Gate("main")))
			pod := workloads.RunPod(ctx, cluster, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PreStop: fixtures.Shell(fixtures.WaitAtGate(workloads.AddressOf(gate))), OnTerm: "exit 7",
			}), WithGrace(300), OnNode(nodes.Of(gate)))
			cluster.Delete(ctx, pod)
			workloads.AwaitReady(ctx, cluster, gate) // the hook runs

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(2))).Object
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Add(2*time.Second))
			nodes.AwaitKubelet(ctx, cluster, nodes.Of(pod))
			opened := cluster.Now(ctx)
			cluster.Delete(ctx, gate)

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			Expect(main.SignaledAt).To(BeTemporally(">=", opened), "SIGTERM is sent when the hook has ended")
		})

	// sleeping creates a pod that sleeps before SIGTERM. The spec is skipped when the server rejects such a pod.
	sleeping := func(ctx SpecContext, seconds int64, onTerm string, options ...ObjectOption) *Object {
		GinkgoHelper()
		response := cluster.TryCreate(ctx, fixtures.NodePod("pod", fixtures.Container{
			Name: "main", PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}, OnTerm: onTerm,
		}), options...)
		if response.StatusCode == http.StatusUnprocessableEntity {
			Skip(fmt.Sprintf("the server does not accept a preStop sleep of %d s (PodLifecycleSleepAction, PodLifecycleSleepActionAllowZero): %s",
				seconds, response.Message()))
		}
		Expect(response).To(HaveStatusCode(http.StatusCreated))
		workloads.AwaitReady(ctx, cluster, response.Object)
		return cluster.Get(ctx, response.Object)
	}

	Specify("A preStop sleep must delay SIGTERM by the given number of seconds.",
		Behavior("graceful.node.pre-stop-sleep", Extended, Node, Since("1.30"), Source("KEP-3960"),
			Promise("When Kubernetes executes the preStop hook with sleep action, it'll simply sleep for a specific seconds.")), func(ctx SpecContext) {
			pod := sleeping(ctx, 4, "exit 0")

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(60))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			slept := terminating.GetDeletionTimestamp().Add((4 - 60) * time.Second)
			Expect(main.SignaledAt).To(fallAt(slept), "SIGTERM is sent when the sleep ends")
		})

	Specify("A grace period shorter than the preStop sleep must end the sleep when the grace period expires.",
		Behavior("graceful.node.pre-stop-sleep-shortened", Extended, Node, Since("1.30"), Source("KEP-3960"),
			Promise("Verify that the container is terminated after the min(sleep, grace).")), func(ctx SpecContext) {
			pod := sleeping(ctx, 60, "exit 7", WithGrace(90))

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(3))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			graceEnds := terminating.GetDeletionTimestamp().Time
			Expect(main.SignaledAt).To(fallAt(graceEnds), "SIGTERM is sent when the grace period expires")
		})

	Specify("SIGTERM must follow a preStop sleep of 0 seconds immediately.",
		Behavior("graceful.node.pre-stop-sleep-zero", Extended, Node, Since("1.33"), Source("KEP-4818"),
			Promise("Allow users to set a zero value for the sleep action in PreStop hooks to do a no-op.")), func(ctx SpecContext) {
			pod := sleeping(ctx, 0, "exit 7")

			terminating := Require(cluster.TryDelete(ctx, pod, Grace(60))).Object

			main := workloads.AwaitTermination(ctx, cluster, pod)["main"]
			deletedAt := terminating.GetDeletionTimestamp().Add(-60 * time.Second)
			Expect(main.SignaledAt).To(BeTemporally("<=", deletedAt.Add(nodes.Tolerance)), "SIGTERM is sent before the grace period expires")
			Expect(main.ExitCode).To(BeEquivalentTo(7), "the container exited by itself")
		})
})
