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
)

var _ = Describe("a second delete of a terminating pod", func() {
	cluster := UseCluster()

	// terminating makes a pod that is terminating with this grace.
	terminating := func(ctx SpecContext, grace int64) *Object {
		pod := cluster.Create(ctx, fixtures.GhostBoundPod(fmt.Sprintf("pod-with-%d", grace)))
		cluster.Delete(ctx, pod, Grace(grace))
		return cluster.Get(ctx, pod)
	}

	// isIgnored expects the repeat to be accepted and to leave the pod its grace and its deletionTimestamp.
	isIgnored := func(ctx SpecContext, pod *Object, options ...DeleteOption) {
		GinkgoHelper()
		Expect(cluster.DeleteResponse(ctx, pod, options...)).To(BeAccepted())
		Expect(cluster.Get(ctx, pod)).To(And(BeSameObjectAs(pod),
			HaveGracePeriod(*pod.GetDeletionGracePeriodSeconds()), HaveDeletionTimestamp(pod.GetDeletionTimestamp())))
	}

	// changesNothing expects the repeat to be answered 200 and the pod to stay as it is stored.
	changesNothing := func(ctx SpecContext, pod *Object, options ...DeleteOption) {
		GinkgoHelper()
		Expect(cluster.DeleteResponse(ctx, pod, options...)).To(And(HaveStatusCode(http.StatusOK), BeUnchangedSince(pod)))
		Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
	}

	Specify("a later, shorter delete lowers deletionGracePeriodSeconds and moves deletionTimestamp earlier by the difference",
		Behavior("graceful.shorter-wins", Core, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			pod := terminating(ctx, 300)

			cluster.Tick(ctx) // the grace goes on from the first delete
			cluster.Delete(ctx, pod, Grace(200))

			earlier := metav1.NewTime(pod.GetDeletionTimestamp().Add(-100 * time.Second))
			Expect(cluster.Get(ctx, pod)).To(And(HaveGracePeriod(200), HaveDeletionTimestamp(&earlier)))
		})

	Specify("a later delete with a longer grace is accepted and changes neither the grace nor deletionTimestamp",
		Behavior("graceful.longer-is-ignored", Core, Source(objectMeta), Promise(onlyShortened)), func(ctx SpecContext) {
			isIgnored(ctx, terminating(ctx, 200), Grace(300))
		})

	Specify("a later delete with an equal grace is accepted and changes neither the grace nor deletionTimestamp",
		Behavior("graceful.equal-is-ignored", Core, Source(objectMeta), Promise(notPostponed)), func(ctx SpecContext) {
			isIgnored(ctx, terminating(ctx, 200), Grace(200))

			ended := terminating(ctx, 1)
			cluster.Outlast(ctx, ended.GetDeletionTimestamp().Add(time.Second))
			isIgnored(ctx, ended, Grace(1))
		})

	Specify("a later delete that says nothing changes nothing",
		Behavior("graceful.silent-repeat-is-ignored", Observed, Source(restDelete)), func(ctx SpecContext) {
			// Both graces that a silent delete could mean, the spec's 30 s and the stored one, must leave it alone.
			changesNothing(ctx, terminating(ctx, 200))
		})

	Specify("shortening below the time already elapsed sets deletionTimestamp to now and the grace to 1, and the pod stays",
		Behavior("graceful.never-in-the-past", Observed, Since("1.33"), Source(restDelete)), func(ctx SpecContext) {
			pod := terminating(ctx, 300)
			deleted := pod.GetDeletionTimestamp().Add(-300 * time.Second)
			cluster.Outlast(ctx, deleted.Add(3*time.Second)) // another second than the one that a grace of 2 s would end in

			before := cluster.Now(ctx)
			cluster.Delete(ctx, pod, Grace(2))
			after := cluster.Now(ctx)

			shortened := cluster.Get(ctx, pod)
			Expect(shortened).To(And(BeTerminating(), HaveGracePeriod(1)))
			Expect(shortened.GetDeletionTimestamp().Time).To(BeTemporally(">=", before), "deletionTimestamp is not in the past")
			Expect(shortened.GetDeletionTimestamp().Time).To(BeTemporally("<=", after), "deletionTimestamp is not in the future")
		})

	Specify("of a pod that turns Failed or Succeeded after the first it changes nothing either: it stays until confirmed",
		Behavior("graceful.terminal-later", Observed, Source(restDelete)), func(ctx SpecContext) {
			for i, phase := range []string{"Failed", "Succeeded"} {
				pod := cluster.SetPhase(ctx, terminating(ctx, int64(200+i)), phase)
				Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HavePhase(phase)))

				changesNothing(ctx, pod)
				changesNothing(ctx, pod, Grace(300))

				cluster.Delete(ctx, pod, Grace(0))
				Expect(cluster.TryGet(ctx, pod)).To(BeGone())
			}
		})
})
