package cascade

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/components"
)

// collectorStarts limits how long a started garbage collector takes to collect: it waits up to 30 s for kinds that it cannot watch yet (see
// newGarbageCollectorController in cmd/kube-controller-manager/app/core.go).
const collectorStarts = 90 * time.Second

var _ = Describe("Controller manager restarts", Serial, func() {
	cluster := UseCluster()

	Specify("A restarted garbage collector must complete pending deletions, and must keep the dependents of living "+
		"owners even if invalid references name the same owners.",
		Behavior("cascade.ownership.collector-restart", Core, GC, Admin, Disruptive, StopsControllerManager,
			Source(ownersAndDependents), Promise(onceAllAbsent)), func(ctx SpecContext) {
			// A restarted collector discovers an owner by any of the references to it.
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			child := cluster.Create(ctx, fixtures.ConfigMap("child"), OwnedBy(owner))
			secret := cluster.Create(ctx, fixtures.Secret("secret"), OwnedBy(owner))
			misplaced := cluster.Create(ctx, fixtures.ClusterRole("misplaced"), OwnedBy(owner))
			gone, waiting, orphaning := cluster.Create(ctx, fixtures.ConfigMap("gone")),
				cluster.Create(ctx, fixtures.ConfigMap("waiting")), cluster.Create(ctx, fixtures.ConfigMap("orphaning"))
			left := cluster.Create(ctx, fixtures.Secret("left"), OwnedBy(gone))
			blocking := cluster.Create(ctx, fixtures.ConfigMap("blocking"), OwnedBy(waiting, Blocking))
			orphan := cluster.Create(ctx, fixtures.ConfigMap("orphan"), OwnedBy(orphaning))

			cluster.AwaitCollectorSync(ctx, child, secret) // fails early without a collector
			start := components.Stop(ctx, cluster, components.ControllerManager)
			cluster.Delete(ctx, gone, Background)
			cluster.Delete(ctx, waiting, Foreground)
			cluster.Delete(ctx, orphaning, Orphan)
			cluster.Create(ctx, fixtures.Secret("misnamed"), OwnedBy(owner, named("somebody")))
			start(ctx)

			Eventually(ctx, cluster.History(left)).WithTimeout(cluster.Session().AtLeast(collectorStarts)).Should(HaveObserved(Deleted(left)))
			Eventually(ctx, cluster.History(waiting, blocking)).Should(HaveObserved(Deleted(blocking), Deleted(waiting)))
			Eventually(ctx, cluster.History(orphaning, orphan)).Should(HaveObserved(Matching(orphan, BeOwnedBy()), Deleted(orphaning)))
			cluster.AwaitCollector(ctx, child, secret, misplaced)
			for _, object := range []*Object{owner, child, secret, misplaced} {
				Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
			}
			Expect(cluster.Get(ctx, orphan)).To(And(BeSameObjectAs(orphan), Not(BeTerminating())))
		})
})
