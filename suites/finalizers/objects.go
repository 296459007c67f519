package finalizers

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// Finalizers of nobody: no controller will ever remove them.
const (
	first  = Domain + "/first"
	second = Domain + "/second"
	third  = Domain + "/third"
)

var _ = Describe("an object with finalizers", func() {
	onConfigMaps := holding{Cluster: UseCluster(), manifest: fixtures.ConfigMap}

	Specify("a delete answers 200 with the object: deletionTimestamp set, deletionGracePeriodSeconds 0, everything else as it "+
		"was, still visible",
		Behavior("finalizers.held", Core), onConfigMaps.held)

	Specify("removing the last finalizer removes the object with no second delete, by update, JSON patch, merge patch and "+
		"server-side apply",
		Behavior("finalizers.last-one-out", Core), onConfigMaps.lastOneOut)

	Specify("with three finalizers only the last removal, whichever it is, terminations it",
		Behavior("finalizers.any-order", Core), onConfigMaps.anyOrder)

	Specify("adding a finalizer to a terminating object is refused, 422, by update and by patch",
		Behavior("finalizers.no-new-ones", Core), onConfigMaps.noNewOnes)

	Specify("on a living object finalizers come and go without deleting it",
		Behavior("finalizers.alive-is-free", Core), onConfigMaps.aliveIsFree)

	Specify("repeated deletes response 200 and leave deletionTimestamp as it was",
		Behavior("finalizers.repeat-is-harmless", Core), onConfigMaps.repeatIsHarmless)

	Specify("grace 0 does not remove a held object",
		Behavior("finalizers.force-is-no-way-round", Core), onConfigMaps.forceIsNoWayRound)

	Specify("other fields of a terminating object can be changed",
		Behavior("finalizers.still-writable", Core), onConfigMaps.stillWritable)

	Specify("its name cannot be created again, 409",
		Behavior("finalizers.name-is-taken", Core), onConfigMaps.nameIsTaken)

	Specify("an unqualified finalizer is refused, 422; both collector finalizers at once are refused, 422",
		Behavior("finalizers.name-must-be-qualified", Core), func(ctx SpecContext) {
			onConfigMaps.unqualifiedIsRefused(ctx)
			onConfigMaps.bothCollectorFinalizersAreRefused(ctx)
		})

	Specify("the delete raises metadata.generation by one where the kind has it, once",
		Behavior("finalizers.generation-once", Core), func(ctx SpecContext) {
			onReplicaSets := holding{Cluster: onConfigMaps.Cluster, manifest: fixtures.ReplicaSet}
			onReplicaSets.generationOnce(ctx)
		})

	Specify("a wrong uid is refused, 409, and changes nothing",
		Behavior("finalizers.preconditions", Core), onConfigMaps.preconditions)

	Specify("a dry-run changes nothing",
		Behavior("finalizers.dry-run", Core), onConfigMaps.dryRun)

	Specify("all of the above on a custom resource",
		Behavior("finalizers.custom-resources", Core, CRD), func(ctx SpecContext) {
			group := onConfigMaps.Group()
			onConfigMaps.CreateDefinition(ctx, fixtures.CustomResourceDefinition(group))
			onThings := holding{Cluster: onConfigMaps.Cluster, manifest: func(name string) *Object {
				return fixtures.CustomResource(group, name)
			}}

			for _, holds := range []func(holding, SpecContext){
				holding.held, holding.lastOneOut, holding.anyOrder, holding.noNewOnes, holding.aliveIsFree,
				holding.repeatIsHarmless, holding.forceIsNoWayRound, holding.stillWritable, holding.nameIsTaken,
				holding.bothCollectorFinalizersAreRefused, holding.generationOnce, holding.preconditions, holding.dryRun,
			} {
				holds(onThings, ctx)
			}
		})
})

// holding has the promises about finalizers, for objects of one kind.
type holding struct {
	*Cluster
	manifest func(name string) *Object
}

// terminating makes an object that these finalizers hold in the middle of its deletion.
func (h holding) terminating(ctx SpecContext, name string, finalizers ...string) *Object {
	GinkgoHelper()
	object := h.Create(ctx, h.manifest(name), WithFinalizers(finalizers...))
	h.Delete(ctx, object)
	return h.Get(ctx, object)
}

func (h holding) held(ctx SpecContext) {
	object := h.Create(ctx, h.manifest("held"), Held)

	response := h.Delete(ctx, object)

	Expect(response).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(object)))
	for _, seen := range []*Object{response.Object, h.Get(ctx, object)} {
		Expect(seen).To(And(BeTerminating(), HaveGracePeriod(0)))
		Expect(ExceptDeletion(seen)).To(Equal(ExceptDeletion(object)), "everything else is as it was")
	}
	Expect(h.List(ctx, object)).To(ContainElement(BeSameObjectAs(object)), "a list still shows it")
}

// withoutFinalizers is a merge patch that removes all finalizers.
var withoutFinalizers = map[string]any{"metadata": map[string]any{"finalizers": nil}}

func (h holding) lastOneOut(ctx SpecContext) {
	removals := map[string]func(*Object){
		"update": func(object *Object) { h.Update(ctx, object, WithoutFinalizers(first)) },
		"json-patch": func(object *Object) {
			h.Patch(ctx, object, types.JSONPatchType, []map[string]any{{"op": "remove", "path": "/metadata/finalizers/0"}})
		},
		"merge-patch": func(object *Object) { h.Patch(ctx, object, types.MergePatchType, withoutFinalizers) },
	}
	for name, remove := range removals {
		object := h.terminating(ctx, name, first)
		remove(object)
		h.isGoneWithoutSecondDelete(ctx, object)
	}

	applied := h.Create(ctx, h.manifest("apply"))
	h.Apply(ctx, applied, map[string]any{"finalizers": []string{first}})
	h.Delete(ctx, applied)
	Expect(h.Get(ctx, applied)).To(And(BeTerminating(), HaveFinalizers(first)))
	h.Apply(ctx, applied, nil)
	h.isGoneWithoutSecondDelete(ctx, applied)
}

func (h holding) isGoneWithoutSecondDelete(ctx SpecContext, object *Object) {
	GinkgoHelper()
	Expect(h.TryGet(ctx, object)).To(BeGone())
	Eventually(ctx, h.History(object)).Should(HaveObserved(Terminating(object), Deleted(object)))
}

func (h holding) anyOrder(ctx SpecContext) {
	for _, order := range [][]string{{first, second, third}, {third, second, first}, {second, third, first}} {
		object := h.terminating(ctx, "terminations-with-"+order[2][len(Domain)+1:], first, second, third)

		h.Update(ctx, object, WithoutFinalizers(order[0]))
		Expect(h.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(order[1], order[2])))
		h.Update(ctx, object, WithoutFinalizers(order[1]))
		Expect(h.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(order[2])))
		h.Update(ctx, object, WithoutFinalizers(order[2]))
		Expect(h.TryGet(ctx, object)).To(BeGone())
	}
}

func (h holding) noNewOnes(ctx SpecContext) {
	object := h.terminating(ctx, "closed", first)

	Expect(h.TryUpdate(ctx, object, WithFinalizers(second))).To(HaveStatusCode(http.StatusUnprocessableEntity))
	Expect(h.TryPatch(ctx, object, types.MergePatchType,
		map[string]any{"metadata": map[string]any{"finalizers": []string{first, second}}},
	)).To(HaveStatusCode(http.StatusUnprocessableEntity))
	Expect(h.TryPatch(ctx, object, types.JSONPatchType,
		[]map[string]any{{"op": "add", "path": "/metadata/finalizers/-", "value": second}},
	)).To(HaveStatusCode(http.StatusUnprocessableEntity))

	Expect(h.Get(ctx, object)).To(BeUnchangedSince(object))
}

func (h holding) aliveIsFree(ctx SpecContext) {
	object := h.Create(ctx, h.manifest("alive"), WithFinalizers(first))

	Expect(h.Update(ctx, object, WithFinalizers(second))).To(HaveFinalizers(first, second))
	Expect(h.Update(ctx, object, WithoutFinalizers(first))).To(HaveFinalizers(second))
	Expect(h.Update(ctx, object, WithoutFinalizers(second))).To(HaveFinalizers())

	Expect(h.Get(ctx, object)).To(And(BeSameObjectAs(object), Not(BeTerminating())))
}

func (h holding) repeatIsHarmless(ctx SpecContext) {
	object := h.terminating(ctx, "repeated", first)
	h.Tick(ctx)

	for _, options := range [][]DeleteOption{{}, {Grace(60)}, {Background}} {
		Expect(h.Delete(ctx, object, options...)).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(object)))
		Expect(h.Get(ctx, object)).To(And(HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizers(first)))
	}
}

func (h holding) forceIsNoWayRound(ctx SpecContext) {
	living := h.Create(ctx, h.manifest("living"), WithFinalizers(first))
	terminating := h.terminating(ctx, "terminating", first)

	for _, object := range []*Object{living, terminating} {
		h.Delete(ctx, object, Grace(0))
		Expect(h.Get(ctx, object)).To(And(BeSameObjectAs(object), BeTerminating(), HaveFinalizers(first)))
	}
}

func (h holding) stillWritable(ctx SpecContext) {
	object := h.terminating(ctx, "writable", first)

	h.Update(ctx, object, WithMetadata(map[string]any{"annotations": map[string]any{Domain + "/note": "by update"}}))
	Expect(h.Get(ctx, object).GetAnnotations()).To(HaveKeyWithValue(Domain+"/note", "by update"))
	h.Patch(ctx, object, types.MergePatchType,
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{Domain + "/note": "by patch"}}})

	written := h.Get(ctx, object)
	Expect(written.GetAnnotations()).To(HaveKeyWithValue(Domain+"/note", "by patch"))
	Expect(written).To(And(HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizers(first)))
}

func (h holding) nameIsTaken(ctx SpecContext) {
	object := h.terminating(ctx, "taken", first)

	Expect(h.TryCreate(ctx, h.manifest("taken"))).To(HaveStatusCode(http.StatusConflict))
	h.Update(ctx, object, WithoutFinalizers(first))

	Expect(h.Create(ctx, h.manifest("taken")).GetUID()).NotTo(Equal(object.GetUID()), "it is another object")
}

func (h holding) unqualifiedIsRefused(ctx SpecContext) {
	Expect(h.TryCreate(ctx, h.manifest("unqualified"), WithFinalizers("unqualified"))).
		To(HaveStatusCode(http.StatusUnprocessableEntity))
}

func (h holding) bothCollectorFinalizersAreRefused(ctx SpecContext) {
	both := WithFinalizers(metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents)
	Expect(h.TryCreate(ctx, h.manifest("both"), both)).To(HaveStatusCode(http.StatusUnprocessableEntity))
}

func (h holding) generationOnce(ctx SpecContext) {
	object := h.Create(ctx, h.manifest("generation"), WithFinalizers(first))
	Expect(object.GetGeneration()).To(BeNumerically(">", 0), "the kind has a generation")

	h.Delete(ctx, object)
	Expect(h.Get(ctx, object)).To(HaveGeneration(object.GetGeneration() + 1))
	h.Delete(ctx, object)
	Expect(h.Get(ctx, object)).To(HaveGeneration(object.GetGeneration() + 1))
}

func (h holding) preconditions(ctx SpecContext) {
	object := h.Create(ctx, h.manifest("conditional"), WithFinalizers(first))

	Expect(h.TryDelete(ctx, object, IfUID("somebody-else"))).To(HaveStatusCode(http.StatusConflict))
	Expect(h.Get(ctx, object)).To(BeUnchangedSince(object))
	h.Delete(ctx, object, IfUID(object.GetUID()))
	Expect(h.Get(ctx, object)).To(BeTerminating())
}

func (h holding) dryRun(ctx SpecContext) {
	held := h.Create(ctx, h.manifest("held-dry"), WithFinalizers(first))
	free := h.Create(ctx, h.manifest("free-dry"))

	for _, object := range []*Object{held, free} {
		for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
			h.Delete(ctx, object, DryRun, policy)
			Expect(h.Get(ctx, object)).To(BeUnchangedSince(object))
		}
	}

	terminating := h.terminating(ctx, "terminating-dry", first)
	h.DryRunPatch(ctx, terminating, types.MergePatchType, withoutFinalizers)
	Expect(h.Get(ctx, terminating)).To(BeUnchangedSince(terminating))
}
