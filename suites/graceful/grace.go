package graceful

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("the grace of a pod's deletion", func() {
	cluster := UseCluster()

	Specify("a pod that says nothing gets 30: deletionGracePeriodSeconds 30, deletionTimestamp 30 s after the request",
		Behavior("graceful.default-thirty", Core, Source(podLifecycle),
			Promise("The default `terminationGracePeriodSeconds` setting is 30 seconds.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			before := cluster.Now(ctx)
			cluster.Delete(ctx, pod)
			after := cluster.Now(ctx)

			terminating := cluster.Get(ctx, pod)
			Expect(terminating).To(And(BeTerminating(), HaveGracePeriod(30)))
			requested := terminating.GetDeletionTimestamp().Add(-30 * time.Second)
			Expect(requested).To(BeTemporally(">=", before), "deletionTimestamp is at least 30 s after the request")
			Expect(requested).To(BeTemporally("<=", after), "deletionTimestamp is at most 30 s after the response")
		})

	Specify("terminationGracePeriodSeconds is used when the options say nothing",
		Behavior("graceful.spec-decides", Core, Source(deleteOptions), Promise("Defaults to a per object value if not specified.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(45))
			without := cluster.Create(ctx, fixtures.GhostBoundPod("without"), WithGrace(0))

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, without)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(45)))
			Expect(cluster.TryGet(ctx, without)).To(BeGone())
		})

	Specify("gracePeriodSeconds in the options wins over the spec, longer or shorter",
		Behavior("graceful.options-override", Core, Source(deleteOptions),
			Promise("The duration in seconds before the object should be deleted.")), func(ctx SpecContext) {
			shorter := cluster.Create(ctx, fixtures.GhostBoundPod("shorter"), WithGrace(45))
			longer := cluster.Create(ctx, fixtures.GhostBoundPod("longer"), WithGrace(45))

			cluster.Delete(ctx, shorter, Grace(20))
			cluster.Delete(ctx, longer, Grace(70))

			Expect(cluster.Get(ctx, shorter)).To(And(BeTerminating(), HaveGracePeriod(20)))
			Expect(cluster.Get(ctx, longer)).To(And(BeTerminating(), HaveGracePeriod(70)))
		})

	Specify("a negative gracePeriodSeconds becomes 1",
		Behavior("graceful.negative-is-one", Observed, Source(restDelete)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			repeated := cluster.Create(ctx, fixtures.GhostBoundPod("repeated"))

			cluster.Delete(ctx, pod, Grace(-5))
			cluster.Delete(ctx, repeated)
			cluster.Delete(ctx, repeated, Grace(-5))

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(1)))
			Expect(cluster.Get(ctx, repeated)).To(And(BeTerminating(), HaveGracePeriod(1)))
		})

	Specify("a negative terminationGracePeriodSeconds is stored as 1",
		Behavior("graceful.negative-spec-is-one", Observed, Source("pkg/apis/core/v1/defaults.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(-5))
			Expect(pod).To(HaveJSONPath("{.spec.terminationGracePeriodSeconds}", "1"))

			cluster.Delete(ctx, pod)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(1)))
		})

	Specify("a preStop sleep longer than terminationGracePeriodSeconds is refused, 422; one as long is not",
		Behavior("graceful.sleep-must-fit", Extended, Since("1.30"), Source("KEP-3960")), func(ctx SpecContext) {
			sleeping := func(name string, seconds int64) Response {
				pod := fixtures.GhostBoundPod(name)
				containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
				containers[0].(map[string]any)["lifecycle"] = map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": seconds}}}
				return cluster.TryCreate(ctx, pod, WithGrace(20), WithField(containers, "spec", "containers"))
			}

			if short := sleeping("short", 1); short.Err != nil {
				Skip("the server takes no preStop sleep (PodLifecycleSleepAction): " + short.Message())
			}
			Expect(sleeping("as-long", 20)).To(HaveStatusCode(http.StatusCreated))
			Expect(sleeping("too-long", 21)).To(HaveStatusCode(http.StatusUnprocessableEntity))
		})

	Specify("a bound pod that is Pending or Running stays, terminating",
		Behavior("graceful.running-waits", Core, Source(podLifecycle), Promise(gracefulByDefault)), func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := cluster.Create(ctx, fixtures.GhostBoundPod("running"))
			cluster.SetPhase(ctx, running, "Running")

			cluster.Delete(ctx, pending)
			cluster.Delete(ctx, running)

			Expect(cluster.Get(ctx, pending)).To(And(BeTerminating(), HaveGracePeriod(30)))
			Expect(cluster.Get(ctx, running)).To(And(BeTerminating(), HaveGracePeriod(30)))
		})

	Specify("the API server never removes a terminating pod by itself: it is still there after its deletionTimestamp",
		Behavior("graceful.nobody-confirms", Observed, Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			cluster.Delete(ctx, pod, Grace(1))
			terminating := cluster.Get(ctx, pod)
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Time)

			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(terminating))
		})

	Specify("a graceful delete is accepted, and answered with the pod, deletionTimestamp set",
		Behavior("graceful.answer-is-the-pod", Core, Source("reference/kubernetes-api/workload-resources/pod-v1"),
			Promise("202 (Pod): Accepted")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			response := cluster.DeleteResponse(ctx, pod)

			Expect(response).To(And(BeAccepted(), BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(30)))
		})

	Specify("a watcher sees MODIFIED with deletionTimestamp, then DELETED",
		Behavior("graceful.watch-order", Core, Source(apiConcepts),
			Promise("The overall **watch** mechanism allows a client to fetch the current state and then subscribe to subsequent changes, "+
				"without missing any events.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, pod, Grace(0))

			// The second delete, too, writes the pod before it is gone.
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Added(pod), Matching(pod, And(BeTerminating(), HaveGracePeriod(30))), Deleted(pod)))
		})

	Specify("other kinds ignore gracePeriodSeconds: a ConfigMap deleted with 60 is gone at once",
		Behavior("graceful.only-pods", Observed, AnyResource, Source(restDelete)), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))

			cluster.Delete(ctx, object, Grace(60))

			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			Eventually(ctx, cluster.History(object)).Should(HaveObservedOnly(Added(object), Deleted(object)))
		})
})
