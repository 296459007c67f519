package options

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

var _ = Describe("Delete requests", func() {
	cluster := UseCluster()

	Specify("A delete with a dryRun value other than All must be refused as invalid and delete nothing.",
		Behavior("options.unknown-dry-run", Core, AnyResource,
			Source(deleteOptions),
			Promise("An invalid or unrecognized dryRun directive will result in an error response and no further processing of the "+
				"request.")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))

			// The documentation does not specify which of the two codes applies.
			invalid := Or(HaveStatusCode(http.StatusBadRequest), HaveStatusCode(http.StatusUnprocessableEntity))
			for _, values := range [][]string{{"Some"}, {"all"}, {metav1.DryRunAll, "Some"}} {
				dryRun := func(request *DeleteRequest) { request.Options.DryRun = values }
				Expect(cluster.TryDelete(ctx, object, dryRun)).To(invalid)
				Expect(cluster.TryDelete(ctx, object, dryRun, InQuery)).To(invalid)
				Expect(cluster.TryDeleteCollection(ctx, object, dryRun)).To(invalid)
			}

			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("A delete or deletecollection accepts DeleteOptions of v1, of meta.k8s.io/v1 and of the group version of the resource.",
		Behavior("options.any-group-version", Observed, Source("kubernetes#111985")), func(ctx SpecContext) {
			budget := func(name string) *Object { return fixtures.PodDisruptionBudget(name, Domain+"/any", "pod") }

			for _, version := range []string{"v1", metav1.SchemeGroupVersion.String(), budget("any").GetAPIVersion()} {
				one := cluster.Create(ctx, budget("one"))
				other := cluster.Create(ctx, budget("other"))

				cluster.Delete(ctx, one, OptionsOf(version), DryRun)
				cluster.DeleteCollection(ctx, one, OptionsOf(version), DryRun)
				Expect(cluster.List(ctx, one)).To(ConsistOf(
					And(BeSameObjectAs(one), Not(BeTerminating())), And(BeSameObjectAs(other), Not(BeTerminating()))))

				cluster.Delete(ctx, one, OptionsOf(version))
				Expect(cluster.List(ctx, one)).To(ConsistOf(BeSameObjectAs(other)))
				cluster.DeleteCollection(ctx, one, OptionsOf(version))
				Expect(cluster.List(ctx, one)).To(BeEmpty())
			}
		})

	Specify("A delete with a body other than DeleteOptions is refused with 400 and deletes nothing.",
		Behavior("options.invalid-body", Observed, AnyResource, Since("1.35"), Source("k8s.io/apiserver/pkg/endpoints/handlers/delete.go")), func(ctx SpecContext) {
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))

			for _, body := range []string{
				"at once, please", "[]", `{"gracePeriodSeconds":"none"}`, `{"kind":"ConfigMap","apiVersion":"v1"}`,
			} {
				Expect(cluster.TryDelete(ctx, object, RawBody(body))).To(HaveStatusCode(http.StatusBadRequest), body)
				Expect(cluster.TryDeleteCollection(ctx, object, RawBody(body))).To(HaveStatusCode(http.StatusBadRequest), body)
			}

			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	Specify("A delete without a body must use the query parameters gracePeriodSeconds, propagationPolicy and dryRun.",
		Behavior("options.query-without-body", Core,
			Source("reference/kubernetes-api/core/config-map-v1"),
			Promise("The duration in seconds before the object should be deleted. ... Whether and how garbage collection will be "+
				"performed.")), func(ctx SpecContext) {
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))
			object := cluster.Create(ctx, fixtures.ConfigMap("object"), Held)

			cluster.Delete(ctx, object, InQuery, DryRun)
			cluster.DeleteCollection(ctx, object, InQuery, DryRun)
			Expect(cluster.Get(ctx, object)).To(BeUnchangedSince(object))

			cluster.Delete(ctx, object, InQuery, Foreground)
			waiting := And(BeTerminating(), HaveFinalizer(metav1.FinalizerDeleteDependents))
			Eventually(ctx, cluster.History(object)).Should(HaveObserved(Matching(object, waiting)))
			cluster.Delete(ctx, pod, InQuery, Grace(45))
			Expect(cluster.Get(ctx, pod)).To(And(BeTerminating(), HaveGracePeriod(45)))
		})

	Specify("A delete with a body ignores query parameters.",
		Behavior("options.query-with-body", Observed, Source("k8s.io/apiserver/pkg/endpoints/handlers/delete.go")), func(ctx SpecContext) {
			silent := RawBody(`{"kind":"DeleteOptions","apiVersion":"v1"}`)
			object := cluster.Create(ctx, fixtures.ConfigMap("object"))
			held := cluster.Create(ctx, fixtures.ConfigMap("held"), Held)

			cluster.Delete(ctx, object, silent, InQuery, DryRun)
			Expect(cluster.TryGet(ctx, object)).To(BeGone())
			cluster.Delete(ctx, held, silent, InQuery, Foreground)
			Eventually(ctx, cluster.History(held)).Should(HaveObservedOnly(Added(held), Matching(held, And(BeTerminating(), HaveFinalizers(Hold)))))
		})

	Specify("The option ignoreStoreReadErrorWithClusterBreakingPotential must be refused for a readable object, with "+
		"other options, in a deletecollection and in an eviction.",
		Behavior("options.unsafe-delete", Extended, Admin, Since("1.32"),
			Source(apiConcepts),
			Promise("If the user issues a **delete** request with ... on an otherwise readable resource, the API server aborts the "+
				"request with an error.")), func(ctx SpecContext) {
			configMap := cluster.Create(ctx, fixtures.ConfigMap("readable"))
			// With another option, which is rejected before anything is read, so that a server that treats the object as readable is not
			// skipped.
			if cluster.TryDelete(ctx, configMap, IgnoringReadErrors, Background, DryRun).Err == nil {
				Skip("the API server does not know the option: the feature gate AllowUnsafeMalformedObjectDeletion is off")
			}
			pod := cluster.Create(ctx, fixtures.GhostBoundPod("pod"))

			// Without permission to delete IgnoringReadErrors the response is 403.
			refused := Or(HaveStatusCode(http.StatusUnprocessableEntity), HaveStatusCode(http.StatusConflict), HaveStatusCode(http.StatusForbidden))
			Expect(cluster.TryDelete(ctx, configMap, IgnoringReadErrors, DryRun)).To(refused) // another option, until 1.36
			for _, other := range []DeleteOption{Background, OrphanDependents(false), Grace(0), IfUID(configMap.GetUID())} {
				Expect(cluster.TryDelete(ctx, configMap, IgnoringReadErrors, other)).To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
			Expect(cluster.TryDelete(ctx, configMap, IgnoringReadErrors)).To(refused)
			Expect(cluster.TryDeleteCollection(ctx, configMap, IgnoringReadErrors)).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(cluster.TryEvict(ctx, pod, IgnoringReadErrors)).To(HaveStatusCode(http.StatusUnprocessableEntity))

			Expect(cluster.Get(ctx, configMap)).To(BeUnchangedSince(configMap))
			Expect(cluster.Get(ctx, pod)).To(BeUnchangedSince(pod))
		})
})
