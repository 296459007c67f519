package finalizers

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// definitionsPage is the documentation of custom resources and their definitions.
const definitionsPage = "tasks/extend-kubernetes/custom-resources/custom-resource-definitions"

var _ = Describe("Finalizers of custom resources", func() {
	cluster := UseCluster()

	// of returns the fields of a definition's only version.
	of := func(definition *Object) map[string]any {
		return definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	}

	// purposeIs is a merge patch.
	purposeIs := func(purpose any) map[string]any {
		return map[string]any{"spec": map[string]any{"purpose": purpose}}
	}

	Specify("A write to the status subresource of a custom resource must neither add nor remove finalizers.",
		Behavior("finalizers.status-write-ignores-finalizers", Core, CRD, Source(definitionsPage),
			Promise("`PUT` requests to the `/status` subresource take a custom resource object and ignore changes to anything except the status stanza.")),
		func(ctx SpecContext) {
			group := cluster.Group()
			definition := fixtures.CustomResourceDefinition(group)
			of(definition)["subresources"] = map[string]any{"status": map[string]any{}}
			definitions.Create(ctx, cluster, definition)
			alive := cluster.Create(ctx, fixtures.CustomResource(group, "alive"), WithFinalizers(first))
			terminating := cluster.Create(ctx, fixtures.CustomResource(group, "terminating"), WithFinalizers(first))
			cluster.Delete(ctx, terminating)

			for _, object := range []*Object{alive, terminating} {
				Expect(cluster.TryUpdate(ctx, object, WithFinalizers(second), "status")).To(HaveStatusCode(http.StatusOK))
				Expect(cluster.TryUpdate(ctx, object, WithoutFinalizers(first), "status")).To(HaveStatusCode(http.StatusOK))
				cluster.Patch(ctx, object, types.MergePatchType, withoutFinalizers, "status")
				Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), HaveFinalizers(first)))
			}
		})

	Specify("The finalizers of a custom resource that no longer matches its schema must be removable.",
		Behavior("finalizers.invalid-custom-resources", Extended, CRD, Since("1.30"), Source("KEP-4008"),
			Promise("this flag allows updates to custom resources that fail validation to succeed if the validation errors were on unchanged keypaths.")),
		func(ctx SpecContext) {
			group := cluster.Group()
			definition := definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(group))
			probe := cluster.Create(ctx, fixtures.CustomResource(group, "probe"))
			free := cluster.Create(ctx, fixtures.CustomResource(group, "free"))
			held := cluster.Create(ctx, fixtures.CustomResource(group, "held"), WithFinalizers(first, second))
			cluster.Update(ctx, definition, func(definition *Object) {
				of(definition)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{
						"type": "object", "properties": map[string]any{"purpose": map[string]any{"type": "string", "maxLength": int64(1)}},
					}},
				}}
			})
			writes := 0
			Eventually(ctx, func() Response {
				writes++
				return cluster.TryPatch(ctx, probe, types.MergePatchType, purposeIs(fmt.Sprint("too long ", writes)))
			}).Should(HaveStatusCode(http.StatusUnprocessableEntity), "the new schema is enforced")
			if cluster.TryUpdate(ctx, probe, WithLabel(Domain+"/note", "written")).Err != nil {
				Skip("the server validates unchanged fields (the feature gate CRDValidationRatcheting is off)")
			}

			cluster.Delete(ctx, free)
			cluster.Delete(ctx, held)
			Expect(cluster.TryGet(ctx, free)).To(BeGone())
			Expect(cluster.Get(ctx, held)).To(And(BeTerminating(), HaveFinalizers(first, second)))

			cluster.Update(ctx, held, WithoutFinalizers(first))
			cluster.Patch(ctx, held, types.MergePatchType, withoutFinalizers)
			Expect(cluster.TryGet(ctx, held)).To(BeGone())
		})

	Specify("A custom resource with an unqualified finalizer name is accepted with a warning.",
		Behavior("finalizers.unqualified-name-warning", Observed, CRD,
			Source("k8s.io/apiextensions-apiserver/pkg/registry/customresource/validator.go")), func(ctx SpecContext) {
			group := cluster.Group()
			definitions.Create(ctx, cluster, fixtures.CustomResourceDefinition(group))

			response := cluster.TryCreate(ctx, fixtures.CustomResource(group, "unqualified"), WithFinalizers(unqualifiedName))

			Expect(response).To(And(HaveStatusCode(http.StatusCreated), HaveFinalizers(unqualifiedName)))
			Expect(WarningsOf(cluster, response)).To(ContainElement(ContainSubstring("prefer a domain-qualified finalizer name")))
			Expect(cluster.Create(ctx, fixtures.CustomResource(group, "qualified"), WithFinalizers(first))).To(HaveFinalizers(first))
		})
})

var _ = Describe("Finalizers of CustomResourceDefinitions", func() {
	cluster := UseCluster()

	// held creates a definition with a hold.
	held := func(ctx SpecContext) *Object {
		GinkgoHelper()
		definition := fixtures.CustomResourceDefinition(cluster.Group())
		WithFinalizers(first)(definition)
		definition = definitions.Create(ctx, cluster, definition)
		return cluster.Get(ctx, definition)
	}

	// deleted deletes a definition, to which controllers write afterwards.
	deleted := func(ctx SpecContext, definition *Object, options ...DeleteOption) *Object {
		GinkgoHelper()
		cluster.Delete(ctx, definition, options...)
		terminating := cluster.Get(ctx, definition)
		Expect(terminating).To(And(BeTerminating(), HaveFinalizer(first)))
		return terminating
	}

	Specify("A delete of a CustomResourceDefinition with another uid or resourceVersion must be refused with 409 and change nothing.",
		Behavior("finalizers.preconditions.definition", Core, CRD, Source(deleteOptions), Promise(mustBeFulfilled.quote)), func(ctx SpecContext) {
			definition := held(ctx)
			refused := func(asItWas OmegaMatcher) {
				GinkgoHelper()
				for _, condition := range []DeleteOption{IfUID("somebody-else"), IfVersion("1")} {
					Expect(cluster.TryDelete(ctx, definition, condition)).To(HaveStatusCode(http.StatusConflict))
					Expect(cluster.Get(ctx, definition)).To(asItWas)
				}
			}

			refused(BeUnchangedSince(definition))
			terminating := deleted(ctx, definition, IfUID(definition.GetUID()), IfVersion(definition.GetResourceVersion()))
			refused(kept(terminating))
		})

	Specify("A dry-run delete of a CustomResourceDefinition, or a dry-run removal of its last finalizer, must change nothing.",
		Behavior("finalizers.dry-run.definition", Core, CRD, Source(apiConcepts), Promise(notPersisted.quote)), func(ctx SpecContext) {
			definition := held(ctx)
			for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
				cluster.Delete(ctx, definition, DryRun, policy)
				Expect(cluster.Get(ctx, definition)).To(BeUnchangedSince(definition))
			}

			terminating := deleted(ctx, definition)
			cluster.Delete(ctx, definition, DryRun)
			cluster.DryRun().Patch(ctx, definition, types.MergePatchType, withoutFinalizers)
			Expect(cluster.Get(ctx, definition)).To(kept(terminating))
		})
})

var _ = Describe("Finalizers of Jobs", func() {
	cluster := UseCluster()

	// suspended returns Jobs without pods. Their controller still writes to them. Their delete wraps the generic one, to warn about a
	// missing policy (pkg/registry/batch/job/storage).
	suspended := func() kind {
		return kind{Cluster: cluster, written: true, manifest: func(name string) *Object {
			job := fixtures.Job(name)
			WithField(true, "spec", "suspend")(job)
			return job
		}}
	}

	Specify("A delete of a Job with another uid must be refused with 409 and change nothing.",
		Behavior("finalizers.preconditions.job", Core, Source(deleteOptions), Promise(mustBeFulfilled.quote)), func(ctx SpecContext) {
			suspended().preconditions(ctx)
		})

	Specify("A dry-run delete of a Job, or a dry-run removal of its last finalizer, must change nothing.",
		Behavior("finalizers.dry-run.job", Core, Source(apiConcepts), Promise(notPersisted.quote)), func(ctx SpecContext) {
			suspended().dryRun(ctx)
		})
})
