package graceful

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("a preStop hook on a real node", func() {
	cluster := UseCluster()

	It("preStop runs to its end before SIGTERM, and its time counts against the grace",
		Behavior("graceful.node.pre-stop-first", Core, Node), func(ctx SpecContext) {
			// Of 14 s the hook takes 6. SIGTERM comes when it has left its note, and is followed by SIGKILL after what is
			// left of the grace: 8 s at the most, and not 14.
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name:    "main",
				PreStop: fixtures.Shell("sleep 6; echo hook ran > /notes/hook"),
				OnTerm:  "cat /notes/hook >> /dev/termination-log",
			}))

			terminating := cluster.Delete(ctx, pod, Grace(14)).Object

			Eventually(ctx, cluster.History(pod)).Should(Show(Terminating(pod), Deleted(pod)))
			main := cluster.Ends(pod)["main"]
			Expect(main.Message).To(Equal("hook ran"), "the hook had ended when SIGTERM came")
			Expect(main.ExitCode).To(BeEquivalentTo(killed))
			Expect(main.Finished).To(BeTemporally(">=", terminating.GetDeletionTimestamp().Time))
			Expect(main.Finished.Sub(main.Terminated)).To(BeNumerically("<", 12*time.Second), "the hook's time counts")
		})

	It("a preStop that outlasts the grace does not keep the pod: the container still gets a short window (2 s), then is killed",
		Behavior("graceful.node.pre-stop-overrun", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name: "main", PreStop: fixtures.Shell("sleep 300"),
			}))

			terminating := cluster.Delete(ctx, pod, Grace(3)).Object

			Eventually(ctx, cluster.History(pod)).Should(Show(Terminating(pod), Deleted(pod)))
			main := cluster.Ends(pod)["main"]
			graceEnds := terminating.GetDeletionTimestamp().Time
			Expect(main.Terminated).To(BeTemporally(">=", graceEnds), "SIGTERM comes when the hook's time is over")
			Expect(main.ExitCode).To(BeEquivalentTo(killed))
			Expect(main.Finished.Sub(main.Terminated)).To(BeNumerically(">=", time.Second), "2 s, in whole seconds of two clocks")
			Expect(main.Finished).To(BeTemporally("<=", graceEnds.Add(Late)))
		})

	It("a failing preStop is not retried and does not stop the deletion; a FailedPreStopHook event says so",
		Behavior("graceful.node.pre-stop-once", Core, Node), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name:    "main",
				PreStop: fixtures.Shell("echo hook ran >> /notes/hook; exit 1"),
				OnTerm:  "sleep 1; cat /notes/hook >> /dev/termination-log; exit 0",
			}))

			cluster.Delete(ctx, pod)

			Eventually(ctx, cluster.History(pod)).Should(Show(Terminating(pod), Deleted(pod)))
			Expect(cluster.Ends(pod)["main"].Message).To(Equal("hook ran"))
			cluster.AwaitEvent(ctx, pod, "FailedPreStopHook")
		})

	It("preStop sleep waits its seconds",
		Behavior("graceful.node.pre-stop-sleep", Extended, Node, Since("1.30")), func(ctx SpecContext) {
			pod := cluster.Run(ctx, fixtures.NodePod("pod", fixtures.Container{
				Name:    "main",
				PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 4}},
				OnTerm:  "exit 0",
			}))

			terminating := cluster.Delete(ctx, pod, Grace(60)).Object

			Eventually(ctx, cluster.History(pod)).Should(Show(Terminating(pod), Deleted(pod)))
			deleted := terminating.GetDeletionTimestamp().Add(-60 * time.Second)
			Expect(cluster.Ends(pod)["main"].Terminated).To(BeTemporally(">=", deleted.Add(4*time.Second)))
			Expect(cluster.Ends(pod)["main"].Terminated).To(BeTemporally("<=", deleted.Add(4*time.Second+Late)))
		})
})
