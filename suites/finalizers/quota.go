package finalizers

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

const (
	// longGrace is the grace period of a pod that must still count after another grace period has passed, on a fast cluster, and
	// longestGrace on a slow one: it must pass twice before the pod garbage collector deletes the pod.
	longGrace, longestGrace = 6 * time.Second, fixtures.GhostLife * 9 / 20
	// quotaPause is how long the quota controller may pause: while it discovers newly defined kinds (Sync in pkg/controller/resourcequota).
	// A late count proves nothing, and is repeated.
	quotaPause    = time.Minute
	countingTries = 3
)

// used matches a ResourceQuota with this usage of a resource.
func used(resource, count string) OmegaMatcher {
	return HaveJSONPath("{.status.used."+strings.ReplaceAll(resource, ".", `\.`)+"}", count)
}

// recount makes the quota controller count, which it does after a deletion. It leaves the counting of new objects to admission, which
// counts nothing until it knows the quota.
func recount(ctx SpecContext, cluster *Cluster, canaries ...*Object) {
	for _, canary := range canaries {
		cluster.Delete(ctx, cluster.Create(ctx, canary))
	}
}

// awaitCount waits for a count of the quota controller.
func awaitCount(ctx SpecContext, cluster *Cluster, quota *Object, counted ...EventMatcher) {
	GinkgoHelper()
	Eventually(ctx, cluster.History(quota)).WithTimeout(cluster.Session().AtLeast(quotaPause)).Should(HaveObserved(counted...))
}

var _ = Describe("ResourceQuotas", func() {
	cluster := UseCluster()

	Specify("A ResourceQuota must count an object until its removal, even while the object is terminating, but must "+
		"not count a Failed or Succeeded pod.",
		Behavior("finalizers.quota-counts-until-removal", Core, KCM, Namespace, Source("concepts/policy/resource-quotas"),
			Promise("The total number of Pods in a non-terminal state that can exist in the namespace.")), func(ctx SpecContext) {
			inside := cluster.In(cluster.Create(ctx, fixtures.Namespace("quota")))
			pod := inside.FirstServed(ctx, fixtures.UnscheduledPod) // which no controller deletes
			budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, Domain+"/any", "pod") }
			rare := inside.FirstServed(ctx, budget, fixtures.Secret) // of which only the spec creates objects here
			counter := "count/" + inside.CollectionOf(ctx, rare("any")).Resource.GroupResource().String()
			quota := inside.Create(ctx, fixtures.ResourceQuota("quota"), WithField("100", "spec", "hard", counter))
			awaitCount(ctx, inside, quota, Matching(quota, And(used("pods", "0"), used(counter, "0"))))
			inside.Create(ctx, fixtures.ServiceAccount(), Named(fixtures.ServiceAccountName))
			free, held := inside.Create(ctx, rare("free")), inside.Create(ctx, rare("held"), Held)
			inside.Create(ctx, pod("running"))
			failed, succeeded := inside.Create(ctx, pod("failed")), inside.Create(ctx, pod("succeeded"))
			counts := func(pods, objects string) EventMatcher {
				return Matching(quota, And(used("pods", pods), used(counter, objects)))
			}
			recount(ctx, inside, rare("canary"), fixtures.UnscheduledPod("canary"))
			awaitCount(ctx, inside, quota, counts("0", "0"), counts("3", "2"))

			inside.Delete(ctx, held)
			inside.Delete(ctx, free)
			awaitCount(ctx, inside, quota, counts("3", "2"), counts("3", "1"))
			workloads.SetPhase(ctx, inside, failed, "Failed")
			workloads.SetPhase(ctx, inside, succeeded, "Succeeded")
			awaitCount(ctx, inside, quota, counts("3", "1"), counts("1", "1"))
			inside.Release(ctx, held)
			awaitCount(ctx, inside, quota, counts("1", "1"), counts("1", "0"))
		})

	Specify("An exhausted ResourceQuota must not prevent the removal of finalizers from the objects that it counts.",
		Behavior("finalizers.quota-permits-release", Core, KCM, Namespace, Source("concepts/policy/resource-quotas"),
			Promise("Neither contention nor changes to quota will affect already created resources.")), func(ctx SpecContext) {
			inside := cluster.In(cluster.Create(ctx, fixtures.Namespace("exhausted")))
			service := inside.Create(ctx, fixtures.Service("service"), Held)
			claim := inside.Create(ctx, fixtures.PersistentVolumeClaim("claim"))
			hard := WithField(map[string]any{"services": "1", "persistentvolumeclaims": "1"}, "spec", "hard")
			quota := inside.Create(ctx, fixtures.ResourceQuota("quota"), hard)
			awaitCount(ctx, inside, quota, Matching(quota, And(used("services", "1"), used("persistentvolumeclaims", "1"))))

			inside.Delete(ctx, service)
			inside.Delete(ctx, claim)
			inside.Release(ctx, service)

			Eventually(ctx, inside.History(service)).Should(HaveObserved(Terminating(service), Deleted(service)))
			Eventually(ctx, inside.History(claim)).Should(HaveObserved(Deleted(claim)))
		})

	Specify("A ResourceQuota stops counting a terminating pod when the grace period has passed a second time after the deletionTimestamp.",
		Behavior("finalizers.quota-ignores-overdue-pods", Observed, KCM, Source("pkg/quota/v1/evaluator/core/pods.go")), func(ctx SpecContext) {
			// The scope Terminating includes only pods with a deadline, which excludes the pods of other specs.
			pod := cluster.FirstServed(ctx, fixtures.GhostBoundPod)
			quota := cluster.Create(ctx, fixtures.ResourceQuota("quota"), WithField([]any{"Terminating"}, "spec", "scopes"))
			awaitCount(ctx, cluster, quota, Matching(quota, used("pods", "0")))
			deadline := WithField(int64(time.Hour/time.Second), "spec", "activeDeadlineSeconds")
			short := cluster.Create(ctx, pod("short"), deadline)
			recount(ctx, cluster, fixtures.UnscheduledPod("canary"))
			awaitCount(ctx, cluster, quota, Matching(quota, used("pods", "1")))
			cluster.Delete(ctx, short, Grace(2))

			grace := min(cluster.Session().Slowed(longGrace), longestGrace).Round(time.Second)
			for try := range countingTries {
				long := cluster.Create(ctx, pod(fmt.Sprintf("long-%d", try)), deadline)
				ends := Require(cluster.TryDelete(ctx, long, Grace(int64(grace.Seconds())))).Object.GetDeletionTimestamp()
				cluster.Outlast(ctx, ends.Time) // by now the shorter grace period has passed three times, and the longer one once
				limit := fmt.Sprint(50 + try)
				cluster.Update(ctx, quota, WithField(limit, "spec", "hard", "pods"))

				counted := HaveJSONPath("{.status.hard.pods}", limit)
				awaitCount(ctx, cluster, quota, Matching(quota, counted))
				recounted := cluster.Get(ctx, quota)
				now := cluster.Now(ctx)
				if now.Before(ends.Add(grace)) && now.Before(long.GetCreationTimestamp().Add(fixtures.GhostLife)) {
					Expect(recounted).To(used("pods", "1"))
					return
				}
				cluster.TryDelete(ctx, long, Grace(0)) // the pod garbage collector may have deleted it by now
			}
			Skip(fmt.Sprintf("the quota controller did not count within %s in %d tries", grace, countingTries))
		})
})
