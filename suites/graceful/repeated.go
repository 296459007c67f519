package graceful

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Repeated pod deletes", func() {
	cluster := UseCluster()

	// terminating creates a pod that is terminating with this grace period.
	terminating := func(ctx SpecContext, grace int64) *Object {
		pod := cluster.Create(ctx, fixtures.GhostBoundPod(fmt.Sprintf("pod-with-%d", grace)))
		cluster.Delete(ctx, pod, Grace(grace))
		return cluster.Get(ctx, pod)
	}

	// isIgnored expects a repeated delete to be accepted without changing the grace period and the deletionTimestamp.
	isIgnored := func(ctx SpecContext, pod *Object, options ...DeleteOption) {
		GinkgoHelper()
		Expect(Require(cluster.TryDelete(ctx, pod, options...))).To(BeAccepted())
		Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod),
			HaveGracePeriod(*pod.GetDeletionGracePeriodSeconds()), HaveDeletionTimestamp(pod.GetDeletionTimestamp())))
	}

	// changesNothing expects a repeated delete to return 200 without changing the stored pod.
	changesNothing := func(ctx SpecContext, pod *Object, options ...DeleteOption) {
		GinkgoHelper()
		Expect(Require(cluster.TryDelete(ctx, pod, options...))).To(And(HaveStatusCode(http.StatusOK), BeUnchangedSince(pod)))
		Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
	}

	Specify("A repeated delete of a pod with a shorter grace period must lower deletionGracePeriodSeconds and move "+
		"deletionTimestamp earlier by the difference.",
		Behavior("graceful.repeat-with-shorter-grace", Core, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			pod := terminating(ctx, 300)

			cluster.Tick(ctx) // the grace period starts at the first delete
			cluster.Delete(ctx, pod, Grace(200))

			earlier := metav1.NewTime(pod.GetDeletionTimestamp().Add(-100 * time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(HaveGracePeriod(200), HaveDeletionTimestamp(&earlier)))
		})

	Specify("A repeated delete of a pod with a longer grace period must be accepted and change neither grace period nor deletionTimestamp.",
		Behavior("graceful.repeat-with-longer-grace", Core, Source(objectMeta), Promise(onlyShortened)), func(ctx SpecContext) {
			isIgnored(ctx, terminating(ctx, 200), Grace(300))
		})

	Specify("A repeated delete of a pod with an equal grace period must be accepted and change neither grace period nor deletionTimestamp.",
		Behavior("graceful.repeat-with-equal-grace", Core, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			isIgnored(ctx, terminating(ctx, 200), Grace(200))

			ended := terminating(ctx, 1)
			cluster.Outlast(ctx, ended.GetDeletionTimestamp().Add(time.Second))
			isIgnored(ctx, ended, Grace(1))
		})

	Specify("A repeated delete of a pod without a grace period changes nothing.",
		Behavior("graceful.repeat-without-grace", Observed, Source(restDelete)), func(ctx SpecContext) {
			// Neither of the possible defaults of a delete without options, the spec's 30 s and the stored one, may change the pod.
			changesNothing(ctx, terminating(ctx, 200))
		})

	Specify("A grace period shorter than the time already elapsed sets deletionTimestamp to the current time and "+
		"deletionGracePeriodSeconds to 1, and the pod remains.",
		Behavior("graceful.repeat-below-elapsed-time", Observed, Since("1.33"), Source(restDelete)), func(ctx SpecContext) {
			pod := terminating(ctx, 300)
			deleted := pod.GetDeletionTimestamp().Add(-300 * time.Second)
			cluster.Outlast(ctx, deleted.Add(3*time.Second)) // not in the second in which a grace period of 2 s would end

			before := cluster.Now(ctx)
			cluster.Delete(ctx, pod, Grace(2))
			after := cluster.Now(ctx)

			shortened := cluster.Get(ctx, pod)
			Expect(shortened).To(And(BeTerminating(), HaveGracePeriod(1)))
			Expect(shortened.GetDeletionTimestamp().Time).To(BeTemporally(">=", before), "deletionTimestamp is not in the past")
			Expect(shortened.GetDeletionTimestamp().Time).To(BeTemporally("<=", after), "deletionTimestamp is not in the future")
		})

	Specify("A repeated delete changes nothing on a pod that became Failed or Succeeded while terminating, unless the grace period is 0.",
		Behavior("graceful.repeat-after-terminal-phase", Observed, Source(restDelete)), func(ctx SpecContext) {
			for i, phase := range []string{"Failed", "Succeeded"} {
				pod := workloads.SetPhase(ctx, cluster, terminating(ctx, int64(200+i)), phase)
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HavePhase(phase)))

				changesNothing(ctx, pod)
				changesNothing(ctx, pod, Grace(300))

				cluster.Delete(ctx, pod, Grace(0))
				Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			}
		})
})
