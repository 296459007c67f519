package graceful

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/workloads"
)

var _ = Describe("Grace periods", func() {
	cluster := UseCluster()

	Specify("A delete without gracePeriodSeconds must give a pod with the default terminationGracePeriodSeconds a "+
		"grace period of 30 seconds and a deletionTimestamp 30 seconds ahead.",
		Behavior("graceful.default-grace", Core, Source(podLifecycle),
			Promise("The default `terminationGracePeriodSeconds` setting is 30 seconds.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			Expect(pod).To(HaveJSONPath("{.spec.terminationGracePeriodSeconds}", "30"))

			before := cluster.Now(ctx)
			cluster.Delete(ctx, pod)
			after := cluster.Now(ctx)

			terminating := cluster.Get(ctx, pod)
			Expect(terminating).To(And(BeTerminating(), HaveGracePeriod(30)))
			requested := terminating.GetDeletionTimestamp().Add(-30 * time.Second)
			Expect(requested).To(BeTemporally(">=", before), "deletionTimestamp is at least 30 s after the request")
			Expect(requested).To(BeTemporally("<=", after), "deletionTimestamp is at most 30 s after the response")
		})

	Specify("A delete without gracePeriodSeconds must use the terminationGracePeriodSeconds of the pod.",
		Behavior("graceful.spec-grace", Core, Source(deleteOptions), Promise("Defaults to a per object value if not specified.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(45))
			without := cluster.Create(ctx, fixtures.GhostBoundPod("without"), WithGrace(0))

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, without)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(45)))
			Expect(cluster.TryGet(ctx, without)).To(BeGone())
		})

	Specify("A delete without a body and without query parameters must use the terminationGracePeriodSeconds of the pod.",
		Behavior("graceful.delete-without-options", Core, Source(deleteOptions), Promise("Defaults to a per object value if not specified.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(45))

			cluster.Delete(ctx, pod, InQuery)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(45)))
		})

	Specify("The gracePeriodSeconds of a delete must override a longer or shorter terminationGracePeriodSeconds of the pod.",
		Behavior("graceful.options-override", Core, Source(deleteOptions),
			Promise("The duration in seconds before the object should be deleted.")), func(ctx SpecContext) {
			shorter := cluster.Create(ctx, fixtures.GhostBoundPod("shorter"), WithGrace(45))
			longer := cluster.Create(ctx, fixtures.GhostBoundPod("longer"), WithGrace(45))

			cluster.Delete(ctx, shorter, Grace(20))
			cluster.Delete(ctx, longer, Grace(70))

			Expect(cluster.Get(ctx, shorter)).To(And(BeTerminating(), HaveGracePeriod(20)))
			Expect(cluster.Get(ctx, longer)).To(And(BeTerminating(), HaveGracePeriod(70)))
		})

	Specify("A negative gracePeriodSeconds in a delete is treated as 1.",
		Behavior("graceful.negative-grace", Observed, Source(restDelete)), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			repeated := cluster.Create(ctx, fixtures.GhostBoundPod("repeated"))

			cluster.Delete(ctx, pod, Grace(-5))
			cluster.Delete(ctx, repeated)
			cluster.Delete(ctx, repeated, Grace(-5))

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(1)))
			Expect(cluster.Get(ctx, repeated)).To(And(BeTerminating(), HaveGracePeriod(1)))
		})

	Specify("A negative terminationGracePeriodSeconds is stored as 1.",
		Behavior("graceful.negative-spec-grace", Observed, Source("pkg/apis/core/v1/defaults.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"), WithGrace(-5))
			Expect(pod).To(HaveJSONPath("{.spec.terminationGracePeriodSeconds}", "1"))

			cluster.Delete(ctx, pod)

			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(1)))
		})

	Specify("A pod with a preStop sleep longer than terminationGracePeriodSeconds must be refused with 422, and a "+
		"sleep of equal length must be accepted.",
		Behavior("graceful.pre-stop-sleep-limit", Extended, Since("1.30"), Source("KEP-3960")), func(ctx SpecContext) {
			sleeping := func(name string, seconds int64) Response {
				return cluster.TryCreate(ctx, fixtures.GhostBoundPod(name), WithGrace(20), inFirstContainer(func(container map[string]any) {
					container["lifecycle"] = map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": seconds}}}
				}))
			}

			if short := sleeping("short", 1); short.Err != nil {
				Skip("the server does not accept a preStop sleep (PodLifecycleSleepAction): " + short.Message())
			}
			Expect(sleeping("as-long", 20)).To(HaveStatusCode(http.StatusCreated))
			Expect(sleeping("too-long", 21)).To(HaveStatusCode(http.StatusUnprocessableEntity))
		})

	Specify("A deleted Pending or Running pod that is bound to a node must remain, terminating with its grace period.",
		Behavior("graceful.scheduled-pod-remains", Core, Source(podLifecycle), Promise(gracefulByDefault)), func(ctx SpecContext) {
			pending := cluster.Create(ctx, fixtures.GhostBoundPod("pending"))
			running := cluster.Create(ctx, fixtures.GhostBoundPod("running"))
			workloads.SetPhase(ctx, cluster, running, "Running")

			cluster.Delete(ctx, pending)
			cluster.Delete(ctx, running)

			Expect(cluster.Get(ctx, pending)).To(And(BeTerminating(), HaveGracePeriod(30)))
			Expect(cluster.Get(ctx, running)).To(And(BeTerminating(), HaveGracePeriod(30)))
		})

	Specify("A terminating pod remains unchanged after its deletionTimestamp has passed.",
		Behavior("graceful.expired-grace-keeps-pod", Observed, Source("k8s.io/apiserver/pkg/registry/generic/registry/store.go")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			cluster.Delete(ctx, pod, Grace(1))
			terminating := cluster.Get(ctx, pod)
			cluster.Outlast(ctx, terminating.GetDeletionTimestamp().Time)

			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(terminating))
		})

	Specify("A graceful delete of a pod must be accepted and return the pod with its deletionTimestamp and grace period.",
		Behavior("graceful.delete-response", Core, Source("reference/kubernetes-api/core/pod-v1"),
			Promise("202 ... Accepted ... Pod")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			response := Require(cluster.TryDelete(ctx, pod))

			Expect(response).To(And(BeAccepted(), BeSameObjectAs(pod), BeTerminating(), HaveGracePeriod(30)))
		})

	Specify("A watch of a deleted pod must deliver MODIFIED with the deletionTimestamp before DELETED.",
		Behavior("graceful.watch-order", Core, Source(apiConcepts),
			Promise("The overall **watch** mechanism allows a client to fetch the current state and then subscribe to subsequent changes, "+
				"without missing any events.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			cluster.Delete(ctx, pod)
			cluster.Delete(ctx, pod, Grace(0))

			// The second delete also updates the pod before it is gone.
			Eventually(ctx, cluster.History(pod)).Should(HaveObserved(
				Added(pod), Matching(pod, And(BeTerminating(), HaveGracePeriod(30))), Deleted(pod)))
		})

	Specify("A delete of an object other than a pod must ignore gracePeriodSeconds.",
		Behavior("graceful.other-kinds", Core, AnyResource, Source("reference/kubectl/generated/kubectl_delete"),
			Promise("Some resources, such as pods, support graceful deletion. ... absence of the support, the --grace-period flag is ignored.")),
		func(ctx SpecContext) {
			budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, Domain+"/any", "pod") }
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.Secret, fixtures.Service, fixtures.Deployment, fixtures.StatefulSet,
				fixtures.ReplicaSet, fixtures.ReplicationController, fixtures.CronJob, budget) {
				object := cluster.Create(ctx, kind("object"))

				cluster.Delete(ctx, object, Background, Grace(60))

				Expect(cluster.TryGet(ctx, object)).To(BeGone())
				Eventually(ctx, cluster.History(object)).Should(HaveObserved(Deleted(object)))
				// Only a finalizer of another controller may hold it, with grace period 0.
				isFree := HaveJSONPath("{.metadata.finalizers}", "")
				Expect(cluster.History(object)).NotTo(HaveObserved(Matching(object, And(BeTerminating(), Or(isFree, Not(HaveGracePeriod(0)))))))
			}
		})
})
