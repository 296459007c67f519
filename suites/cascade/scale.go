package cascade

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// These behaviors are not of every resource: the garbage collector does not distinguish kinds here, and its request rate would limit a run
// with many resources.
var _ = Describe("Cascading deletion of many objects", func() {
	cluster := UseCluster()

	Specify("Background deletion of an owner with many dependents must delete all its dependents and nothing else.",
		Behavior("cascade.scale.many-dependents", Core, GC,
			Source(garbageCollection), Promise(inBackground)), func(ctx SpecContext) {
			owner := cluster.Create(ctx, fixtures.ConfigMap("owner"))
			bystander := cluster.Create(ctx, fixtures.ConfigMap("bystander"))
			var dependents []*Object
			for i := range cluster.Session().Scale {
				dependents = append(dependents, cluster.Create(ctx, fixtures.ConfigMap(fmt.Sprintf("dependent-%d", i)), OwnedBy(owner)))
			}

			cluster.Delete(ctx, owner, Background)

			Eventually(ctx, cluster.History(append(dependents, owner)...)).WithPolling(manyPolling).Should(
				HaveObserved(Deleted(owner), Each(Deleted, dependents...)))
			Expect(cluster.List(ctx, owner)).To(ConsistOf(BeUnchangedSince(bystander)), "only the unrelated object remains")
		})

	Specify("Many owners that are deleted together with different options and finalizers must each have their "+
		"dependents deleted or orphaned accordingly.",
		Behavior("cascade.scale.mixed-policies", Core, GC,
			Source(garbageCollection), Promise(canControl)), func(ctx SpecContext) {
			var owners, collected, orphaned []*Object
			for i := range 10 * len(waysToDelete) {
				way := waysToDelete[i%len(waysToDelete)]
				owner := cluster.Create(ctx, fixtures.ConfigMap(fmt.Sprintf("owner-%d", i)), WithFinalizers(way.finalizers...))
				dependent := cluster.Create(ctx, fixtures.ConfigMap(fmt.Sprintf("dependent-%d", i)), OwnedBy(owner))
				owners = append(owners, owner)
				if way.orphans {
					orphaned = append(orphaned, dependent)
				} else {
					collected = append(collected, dependent)
				}
			}

			for i, owner := range owners {
				cluster.Delete(ctx, owner, waysToDelete[i%len(waysToDelete)].options...)
			}

			gone := append(owners, collected...)
			Eventually(ctx, cluster.History(gone...)).WithPolling(manyPolling).Should(HaveObserved(Each(Deleted, gone...)))
			cluster.AwaitCollector(ctx)
			survivors := cluster.List(ctx, owners[0])
			for _, orphan := range orphaned {
				Expect(survivors).To(ContainElement(And(BeSameObjectAs(orphan), BeOwnedBy(), Not(BeTerminating()))))
			}
		})
})

// manyPolling is the interval for evaluating a long history, which takes time.
const manyPolling = 20 * time.Millisecond

// waysToDelete are the ways of deleting owners, with the results for their dependents.
var waysToDelete = []struct {
	finalizers []string
	options    []DeleteOption
	orphans    bool
}{
	{},
	{finalizers: []string{metav1.FinalizerOrphanDependents}, orphans: true},
	{options: []DeleteOption{OrphanDependents(true)}, orphans: true},
	{options: []DeleteOption{OrphanDependents(false)}},
	{options: []DeleteOption{Orphan}, orphans: true},
}
