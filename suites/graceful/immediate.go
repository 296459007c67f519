package graceful

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Immediate removal of pods", func() {
	cluster := UseCluster()

	// No document promises the behaviors of unscheduled and ended pods. This project requires them, because controllers and other core
	// behaviors rely on them.

	// goesAtOnce deletes pods with every option that requests immediate deletion, and expects each to be gone with the response, without
	// ever having had a grace period.
	goesAtOnce := func(ctx SpecContext, make func(name string) *Object) {
		GinkgoHelper()
		silent, asked := make("silent"), make("asked")

		cluster.Delete(ctx, silent)
		cluster.Delete(ctx, asked, Grace(60))

		for _, pod := range []*Object{silent, asked} {
			Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
			Expect(cluster.History(pod)).NotTo(HaveObserved(Matching(pod, And(BeTerminating(), Not(HaveGracePeriod(0))))))
		}
	}

	ended := func(ctx SpecContext, phase string) func(name string) *Object {
		return func(name string) *Object {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod(name), WithGrace(60))
			return workloads.SetPhase(ctx, cluster, pod, phase)
		}
	}

	Specify("A delete with gracePeriodSeconds 0 must remove a scheduled pod immediately, even if the pod is already terminating.",
		Behavior("graceful.immediate-grace-zero", Core, Source(deleteOptions), Promise("The value zero indicates delete immediately.")), func(ctx SpecContext) {
			alive, terminating := cluster.Create(ctx, fixtures.GhostBoundPod("alive")), cluster.Create(ctx, fixtures.GhostBoundPod("terminating"))
			cluster.Delete(ctx, terminating, Grace(200))

			for _, pod := range []*Object{alive, terminating} {
				cluster.Delete(ctx, pod, Grace(0))
				Expect(cluster.TryGet(ctx, pod)).To(BeGone())
				Eventually(ctx, cluster.History(pod)).Should(HaveObserved(Deleted(pod)))
			}
		})

	Specify("A delete of an unscheduled pod must remove the pod immediately, regardless of the requested grace period.",
		Behavior("graceful.immediate-unscheduled", Core, Source(podStrategy)), func(ctx SpecContext) {
			goesAtOnce(ctx, func(name string) *Object {
				return cluster.Create(ctx, fixtures.UnscheduledPod(name), WithGrace(60))
			})
		})

	Specify("A delete of a pod with scheduling gates must remove the pod immediately, regardless of the requested grace period.",
		Behavior("graceful.immediate-gated", Core, Source(podStrategy)), func(ctx SpecContext) {
			goesAtOnce(ctx, func(name string) *Object {
				return cluster.Create(ctx, fixtures.UnscheduledPod(name), WithGrace(60), gated)
			})
		})

	Specify("A delete of a Failed pod must remove the pod immediately, regardless of the requested grace period.",
		Behavior("graceful.immediate-failed", Core, Source(podStrategy)), func(ctx SpecContext) {
			goesAtOnce(ctx, ended(ctx, "Failed"))
		})

	Specify("A delete of a Succeeded pod must remove the pod immediately, regardless of the requested grace period.",
		Behavior("graceful.immediate-succeeded", Core, Source(podStrategy)), func(ctx SpecContext) {
			goesAtOnce(ctx, ended(ctx, "Succeeded"))
		})
})

// gated keeps the scheduler from trying a pod.
var gated = WithField([]any{map[string]any{"name": Domain + "/gate"}}, "spec", "schedulingGates")
