package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

// apiEviction is the page of the documentation on evictions.
const apiEviction = "concepts/scheduling-eviction/api-eviction"

// beAllowed matches the response to a permitted eviction: 200 as documented, or 201 as upstream returns.
func beAllowed() OmegaMatcher {
	return Or(HaveStatusCode(http.StatusOK), HaveStatusCode(http.StatusCreated))
}

var _ = Describe("Evictions", func() {
	cluster := UseCluster()

	Specify("An eviction must use the grace period in its deleteOptions, and must be refused with 429 for a running "+
		"pod that a PodDisruptionBudget protects.",
		Behavior("graceful.eviction-options", Core, Source(apiEviction),
			Promise("Using the API to create an Eviction object for a Pod is like performing a policy-controlled `DELETE` operation on the Pod.")),
		func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := workloads.SetPhase(ctx, cluster, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			protected := cluster.Create(ctx, fixtures.GhostBoundPod("protected"), WithLabel(Domain+"/protected", "yes"))
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/protected", "yes"))
			protected = workloads.SetPhase(ctx, cluster, protected, "Running") // budgets do not protect pending pods

			for _, pod := range []*Object{pending, running} {
				Expect(cluster.TryEvict(ctx, pod, DryRun)).To(beAllowed())
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(beAllowed())
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
			}

			Expect(cluster.TryEvict(ctx, protected, Grace(20))).To(HaveStatusCode(http.StatusTooManyRequests))
			Expect(cluster.Get(ctx, protected)).To(BeUnchangedSince(protected))
		})

	Specify("An eviction of a Pending, Failed or Succeeded pod must be allowed regardless of its PodDisruptionBudget.",
		Behavior("graceful.eviction-pending-or-ended", Core, Source("tasks/run-application/configure-pdb"),
			Promise("Pods in `Pending`, `Succeeded` or `Failed` phase are always considered for eviction.")), func(ctx SpecContext) {
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, "spares-no-dead"))
			pod := func(name, phase string) *Object {
				pod := cluster.Create(ctx, fixtures.GhostBoundPod(name), WithLabel(budgeted, "spares-no-dead"))
				return workloads.SetPhase(ctx, cluster, pod, phase)
			}
			alive, pending := pod("alive", "Running"), pod("pending", "Pending")
			failed, succeeded := pod("failed", "Failed"), pod("succeeded", "Succeeded")

			Expect(cluster.TryEvict(ctx, alive)).To(HaveStatusCode(http.StatusTooManyRequests))
			Expect(cluster.TryEvict(ctx, pending, Grace(20))).To(beAllowed())
			Expect(cluster.Get(ctx, pending)).To(And(BeTerminating(), HaveGracePeriod(20)))
			for _, pod := range []*Object{failed, succeeded} {
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(beAllowed())
				Expect(cluster.TryGet(ctx, pod)).To(Or(BeGone(), BeTerminating()))
			}
		})

	Specify("An eviction of a terminating pod is allowed regardless of its PodDisruptionBudget.",
		Behavior("graceful.eviction-terminating-pod", Observed, Source("pkg/registry/core/pod/storage/eviction.go")), func(ctx SpecContext) {
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, "of-terminating"))
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithLabel(budgeted, "of-terminating"))
			workloads.SetPhase(ctx, cluster, pod, "Running")
			Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusTooManyRequests))
			cluster.Delete(ctx, pod, Grace(300))

			Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(beAllowed())
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
		})

	Specify("An eviction with another uid or resourceVersion must be refused with 409 and change nothing, and an "+
		"eviction of an absent pod must return 404.",
		Behavior("graceful.eviction-preconditions", Core, Source(deleteOptions), Promise(mustBeFulfilled)), func(ctx SpecContext) {
			workloads.MustServeBudgets(ctx, cluster)
			earlier := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			pod := workloads.SetPhase(ctx, cluster, earlier, "Running") // for a pending pod, a conflict over the uid is retried for 10 s

			for _, wrong := range []DeleteOption{IfUID("somebody-else"), IfVersion(earlier.GetResourceVersion())} {
				for _, options := range [][]DeleteOption{{wrong}, {wrong, Grace(0)}} {
					Expect(cluster.TryEvict(ctx, pod, options...)).To(HaveStatusCode(http.StatusConflict))
					Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				}
			}

			Expect(cluster.TryEvict(ctx, pod, IfUID(pod.GetUID()), IfVersion(pod.GetResourceVersion()))).To(beAllowed())
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(30)))
			cluster.Delete(ctx, pod, Grace(0))
			Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusNotFound))
		})

	Specify("An evicted pod must have the condition DisruptionTarget with the reason EvictionByEvictionAPI, and a "+
		"dry-run eviction must not add the condition.",
		Behavior("graceful.eviction-condition", Core, Source("KEP-3329"), Promise("EvictionByEvictionAPI (Pod deleted by Eviction API)")), func(ctx SpecContext) {
			workloads.MustServeBudgets(ctx, cluster)
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := workloads.SetPhase(ctx, cluster, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			held := cluster.Create(ctx, fixtures.UnscheduledPod("held"), Held)

			for _, pod := range []*Object{pending, running, held} {
				Expect(cluster.TryEvict(ctx, pod, DryRun)).To(beAllowed())
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				Expect(cluster.TryEvict(ctx, pod)).To(beAllowed())
				Expect(cluster.Get(ctx, pod)).To(And(
					BeTerminating(), HaveConditionSaying(string(corev1.DisruptionTarget), "EvictionByEvictionAPI")))
			}
		})
})
