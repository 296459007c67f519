package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// apiEviction is where evictions are documented.
const apiEviction = "concepts/scheduling-eviction/api-eviction"

var _ = Describe("an eviction", func() {
	cluster := UseCluster()

	Specify("its deleteOptions decide the grace; a PodDisruptionBudget refuses that of a running pod with 429 and changes nothing",
		Behavior("graceful.eviction-options", Core, Source(apiEviction)), func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := cluster.SetPhase(ctx, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			protected := cluster.Create(ctx, fixtures.GhostBoundPod("protected"), WithLabel(Domain+"/protected", "yes"))
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", Domain+"/protected", "yes"))
			protected = cluster.SetPhase(ctx, protected, "Running") // budgets do not protect pending pods

			for _, pod := range []*Object{pending, running} {
				Expect(cluster.TryEvict(ctx, pod, DryRun)).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
			}

			Expect(cluster.TryEvict(ctx, protected, Grace(20))).To(HaveStatusCode(http.StatusTooManyRequests))
			Expect(cluster.Get(ctx, protected)).To(BeUnchangedSince(protected))
		})

	Specify("pending, failed, succeeded and terminating pods are evicted whatever the budget says",
		Behavior("graceful.eviction-spares-no-dead", Core, Source(apiEviction)), func(ctx SpecContext) {
			cluster.Create(ctx, fixtures.PodDisruptionBudget("budget", budgeted, "spares-no-dead"))
			pod := func(name, phase string) *Object {
				pod := cluster.Create(ctx, fixtures.GhostBoundPod(name), WithLabel(budgeted, "spares-no-dead"))
				return cluster.SetPhase(ctx, pod, phase)
			}
			alive, terminating := pod("alive", "Running"), pod("terminating", "Running")
			pending, failed, succeeded := pod("pending", "Pending"), pod("failed", "Failed"), pod("succeeded", "Succeeded")
			cluster.Delete(ctx, terminating, Grace(300))

			Expect(cluster.TryEvict(ctx, alive)).To(HaveStatusCode(http.StatusTooManyRequests))
			for _, pod := range []*Object{pending, terminating} {
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(20)))
			}
			for _, pod := range []*Object{failed, succeeded} {
				Expect(cluster.TryEvict(ctx, pod, Grace(20))).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			}
		})

	Specify("a wrong uid or resourceVersion in its deleteOptions is refused, 409, and changes nothing; the right ones are not; "+
		"an absent pod is 404",
		Behavior("graceful.eviction-preconditions", Core, Source(apiEviction)), func(ctx SpecContext) {
			earlier := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			pod := cluster.SetPhase(ctx, earlier, "Running") // of a pending pod, a conflict over the uid is tried again for 10 s

			for _, wrong := range []DeleteOption{IfUID("somebody-else"), IfVersion(earlier.GetResourceVersion())} {
				for _, options := range [][]DeleteOption{{wrong}, {wrong, Grace(0)}} {
					Expect(cluster.TryEvict(ctx, pod, options...)).To(HaveStatusCode(http.StatusConflict))
					Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				}
			}

			Expect(cluster.TryEvict(ctx, pod, IfUID(pod.GetUID()), IfVersion(pod.GetResourceVersion()))).To(HaveStatusCode(http.StatusCreated))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(30)))
			cluster.Delete(ctx, pod, Grace(0))
			Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusNotFound))
		})

	Specify("an evicted pod has the condition DisruptionTarget True, EvictionByEvictionAPI; a dry-run writes none",
		Behavior("graceful.eviction-says-why", Core, Source("KEP-3329")), func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := cluster.SetPhase(ctx, cluster.Create(ctx, fixtures.GhostBoundPod("running")), "Running")
			held := cluster.Create(ctx, fixtures.UnscheduledPod("held"), Held)

			for _, pod := range []*Object{pending, running, held} {
				Expect(cluster.TryEvict(ctx, pod, DryRun)).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
				Expect(cluster.TryEvict(ctx, pod)).To(HaveStatusCode(http.StatusCreated))
				Expect(cluster.Get(ctx, pod)).To(And(
					BeTerminating(), HaveConditionSaying(string(corev1.DisruptionTarget), "EvictionByEvictionAPI")))
			}
		})
})
