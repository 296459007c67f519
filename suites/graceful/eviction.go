package graceful

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("an eviction", func() {
	cluster := UseCluster()

	Specify("its deleteOptions decide the grace; a PodDisruptionBudget refuses that of a running pod with 429 and changes nothing",
		Behavior("graceful.eviction-options", Core, Source("concepts/scheduling-eviction/api-eviction")), func(ctx SpecContext) {
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
})
