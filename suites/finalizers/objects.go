package finalizers

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

// Finalizers that no controller removes.
const (
	first  = Domain + "/first"
	second = Domain + "/second"
	third  = Domain + "/third"
)

// Pages with promises, and sources of observed behaviors.
const (
	finalizersPage = "concepts/overview/working-with-objects/finalizers"
	objectMeta     = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	deleteOptions  = "reference/kubernetes-api/definitions/delete-options-v1-meta"
	apiConcepts    = "reference/using-api/api-concepts"
	store          = "k8s.io/apiserver/pkg/registry/generic/registry/store.go"
)

// written is a sentence of a document, which may promise several behaviors.
type written struct{ source, quote string }

// The sentences.
var (
	marked = written{finalizersPage,
		"Modifies the object to add a `metadata.deletionTimestamp` field with the time you started the deletion."}
	prevented = written{finalizersPage, "Prevents the object from being removed until all items are removed from its `metadata.finalizers` field"}
	emptied   = written{finalizersPage,
		"When the `finalizers` field is emptied, an object with a `deletionTimestamp` field set is automatically deleted."}
	qualified = written{finalizersPage,
		"the API server rejects writes to objects where the change does not use qualified finalizer names for any custom finalizer."}
	onlyRemoved = written{objectMeta, "If the deletionTimestamp of the object is non-nil, entries in this list can only be removed."}
	inAnyOrder  = written{objectMeta, "Finalizers may be processed and removed in any order."}
	setByServer = written{objectMeta,
		"This field is set by the server when a graceful deletion is requested by the user, and is not directly settable by a client."}
	notPostponed = written{objectMeta,
		"Once the deletionTimestamp is set, this value may not be unset or be set further into the future"}
	oneOfAName = written{"concepts/overview/working-with-objects/names",
		"Only one object of a given kind can have a given name at a time."}
	mustBeFulfilled = written{deleteOptions,
		"Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status will be returned."}
	notPersisted = written{apiConcepts,
		"Kubernetes guarantees that dry-run requests will not be persisted in storage or have any other side effects."}
	closeToReal     = written{apiConcepts, "The response body for the request is as close as possible to a non-dry-run response."}
	staleIsConflict = written{apiConcepts, "In the event that the resource has changed (the `resourceVersion` the client provided is stale), " +
		"the API server returns a `409 Conflict` error response."}
	ownItemsOnly = written{"reference/using-api/server-side-apply",
		"... each missing item not managed by any other appliers is removed."}
)

// unqualifiedName is a finalizer without a slash. It begins with the domain, like all finalizers of the run, so the run removes it.
const unqualifiedName = Domain + "-unqualified"

var _ = Describe("Finalizers of any object", func() {
	o := &kindSpecs{cluster: UseCluster()}
	o.deletions()
	o.releases()
	o.applies()
	o.timestamps()

	Specify("A strategic merge patch that deletes a finalizer from the list removes this one, and adds none to an object without finalizers.",
		Behavior("finalizers.strategic-patch", Observed, Source("k8s.io/apimachinery/pkg/util/strategicpatch/patch.go")), func(ctx SpecContext) {
			k := kind{Cluster: o.cluster, manifest: fixtures.ConfigMap}
			free, held := k.Create(ctx, k.manifest("free")), k.terminating(ctx, "held", first, second)
			remove := func(object *Object, finalizer string) {
				GinkgoHelper()
				k.Patch(ctx, object, types.StrategicMergePatchType,
					map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []string{finalizer}}})
			}

			remove(free, first)
			remove(held, first)
			Expect(k.Get(ctx, free)).To(BeUnchangedSince(free))
			Expect(k.Get(ctx, held)).To(And(BeTerminating(), HaveFinalizers(second)))
			remove(held, second)
			Expect(k.TryGet(ctx, held)).To(BeGone())
		})

	Specify("A custom resource with finalizers must behave as an object of a built-in kind must, except that finalizer "+
		"names need not be qualified.",
		Behavior("finalizers.custom-resources", Core, CRD, Source(definitionsPage),
			Promise("Custom objects support finalizers similar to built-in objects.")), func(ctx SpecContext) {
			o.holdOfCustomResources(ctx, o.promised)

			unqualified := fixtures.CustomResource(o.cluster.Group(), "unqualified")
			Expect(o.cluster.TryCreate(ctx, unqualified, WithFinalizers(unqualifiedName))).To(
				And(HaveStatusCode(http.StatusCreated), HaveFinalizers(unqualifiedName)))
		})

	Specify("A custom resource with finalizers behaves as an object of a built-in kind is observed to behave.",
		Behavior("finalizers.custom-resources-observed", Observed, CRD,
			Source("k8s.io/apiextensions-apiserver/pkg/registry/customresource")), func(ctx SpecContext) {
			o.holdOfCustomResources(ctx, o.seen)
		})
})

// kindSpecs defines specs about objects of a built-in kind, and checks the same of custom resources.
type kindSpecs struct {
	cluster *Cluster
	// promised and seen are the specs so far, by whether they are promised.
	promised, seen []check
}

// check is the body of a spec, for objects of any kind.
type check struct {
	statement string
	holds     func(SpecContext, kind)
}

// must defines a spec about objects of a kind. Custom resources must pass it, too.
func (o *kindSpecs) must(statement string, behavior []any, manifest func(name string) *Object, holds func(SpecContext, kind)) {
	o.promised = append(o.promised, check{statement, holds})
	o.specify(statement, behavior, manifest, holds)
}

// observed defines a spec about objects of a kind. Custom resources are observed to pass it, too.
func (o *kindSpecs) observed(statement string, behavior []any, manifest func(name string) *Object, holds func(SpecContext, kind)) {
	o.seen = append(o.seen, check{statement, holds})
	o.specify(statement, behavior, manifest, holds)
}

func (o *kindSpecs) specify(statement string, behavior []any, manifest func(name string) *Object, holds func(SpecContext, kind)) {
	Specify(statement, behavior, Offset(2), func(ctx SpecContext) { holds(ctx, kind{Cluster: o.cluster, manifest: manifest}) })
}

// holdOfCustomResources runs checks on custom resources and reports all that fail.
func (o *kindSpecs) holdOfCustomResources(ctx SpecContext, checks []check) {
	GinkgoHelper()
	group := o.cluster.Group()
	definitions.Create(ctx, o.cluster, fixtures.CustomResourceDefinition(group))
	things := kind{Cluster: o.cluster, manifest: func(name string) *Object { return fixtures.CustomResource(group, name) }}
	var broken []error
	for _, check := range checks {
		if err := InterceptGomegaFailure(func() { check.holds(ctx, things) }); err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", check.statement, err))
		}
	}
	Expect(errors.Join(broken...)).NotTo(HaveOccurred())
}

// kind is a kind of objects, for behaviors that are promised for all kinds.
type kind struct {
	*Cluster
	manifest func(name string) *Object
	// written is set for objects that controllers also write.
	written bool
}

// asStored matches an object that a rejected delete has not changed: it is unchanged, or at least its deletion fields are.
func (k kind) asStored(object *Object) OmegaMatcher {
	switch {
	case !k.written:
		return BeUnchangedSince(object)
	case object.GetDeletionTimestamp() != nil:
		return kept(object)
	}
	return And(BeSameObjectAs(object), Not(BeTerminating()), HaveFinalizers(object.GetFinalizers()...))
}

// kept matches an object that is still terminating, with the same deletionTimestamp, and held by its first finalizer.
func kept(object *Object) OmegaMatcher {
	return And(BeSameObjectAs(object), HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizer(first))
}

// terminating creates and deletes an object that is held by these finalizers.
func (k kind) terminating(ctx SpecContext, name string, finalizers ...string) *Object {
	GinkgoHelper()
	object := k.Create(ctx, k.manifest(name), WithFinalizers(finalizers...))
	k.Delete(ctx, object)
	return k.Get(ctx, object)
}

// withoutFinalizers is a merge patch that removes all finalizers.
var withoutFinalizers = map[string]any{"metadata": map[string]any{"finalizers": nil}}

// apply applies metadata as the spec's field manager (server-side apply).
func (k kind) apply(ctx SpecContext, object *Object, metadata map[string]any) {
	GinkgoHelper()
	Require(k.TryApply(ctx, object, Domain, metadata))
}

func (k kind) expectDeletedOnce(ctx SpecContext, object *Object) {
	GinkgoHelper()
	Expect(k.TryGet(ctx, object)).To(BeGone())
	Eventually(ctx, k.History(object)).Should(HaveObserved(Terminating(object), Deleted(object)))
}

func (k kind) preconditions(ctx SpecContext) {
	object := k.Create(ctx, k.manifest("conditional"), WithFinalizers(first))

	Expect(k.TryDelete(ctx, object, IfUID("somebody-else"))).To(HaveStatusCode(http.StatusConflict))
	Expect(k.Get(ctx, object)).To(k.asStored(object))
	k.Delete(ctx, object, IfUID(object.GetUID()))
	Expect(k.Get(ctx, object)).To(BeTerminating())
}

func (k kind) dryRun(ctx SpecContext) {
	held := k.Create(ctx, k.manifest("held-dry"), WithFinalizers(first))
	free := k.Create(ctx, k.manifest("free-dry"))

	for _, object := range []*Object{held, free} {
		for _, policy := range []DeleteOption{Background, Foreground, Orphan} {
			k.Delete(ctx, object, DryRun, policy)
			Expect(k.Get(ctx, object)).To(k.asStored(object))
		}
	}

	terminating := k.terminating(ctx, "terminating-dry", first)
	k.DryRun().Patch(ctx, terminating, types.MergePatchType, withoutFinalizers)
	Expect(k.Get(ctx, terminating)).To(k.asStored(terminating))
}

// deletions are the specs about the deletion of objects with finalizers.
func (o *kindSpecs) deletions() {
	o.must("A delete of an object with a finalizer must be accepted, set the deletionTimestamp, and otherwise leave the object "+
		"unchanged and visible.",
		Behavior("finalizers.held", Core, AnyResource, Source(marked.source), Promise(marked.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.Create(ctx, k.manifest("held"), Held)

			Expect(Require(k.TryDelete(ctx, object))).To(BeAccepted())

			Expect(k.Get(ctx, object)).To(And(BeSameObjectAs(object), BeTerminating()))
			Expect(k.Get(ctx, object)).To(BeAsBeforeDeletion(object), "all other fields are unchanged")
			Expect(k.List(ctx, object)).To(ContainElement(BeSameObjectAs(object)), "a list contains the object")
		})

	o.observed("A delete of an object with a finalizer returns 200 with the object, and deletionGracePeriodSeconds 0 regardless of "+
		"gracePeriodSeconds.",
		Behavior("finalizers.held-response", Observed, AnyResource, Source(store)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			for name, options := range map[string][]DeleteOption{"answered": nil, "answered-with-grace": {Grace(60)}} {
				object := k.Create(ctx, k.manifest(name), Held)

				response := Require(k.TryDelete(ctx, object, options...))

				Expect(response).To(And(HaveStatusCode(http.StatusOK), BeSameObjectAs(object)))
				for _, seen := range []*Object{response.Object, k.Get(ctx, object)} {
					Expect(seen).To(And(BeTerminating(), HaveGracePeriod(0), HaveIncrementedGeneration(object), BeAsBeforeDeletion(object)))
				}
			}
		})

	o.must("Removing the last finalizer by update, JSON patch, merge patch or server-side apply must remove a terminating "+
		"object without a second delete.",
		Behavior("finalizers.last-removal", Core, AnyResource, Source(emptied.source), Promise(emptied.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			removals := map[string]func(*Object){
				"update": func(object *Object) { k.Update(ctx, object, WithoutFinalizers(first)) },
				"json-patch": func(object *Object) {
					k.Patch(ctx, object, types.JSONPatchType, []map[string]any{{"op": "remove", "path": "/metadata/finalizers/0"}})
				},
				"merge-patch": func(object *Object) { k.Patch(ctx, object, types.MergePatchType, withoutFinalizers) },
			}
			for name, remove := range removals {
				object := k.terminating(ctx, name, first)
				remove(object)
				k.expectDeletedOnce(ctx, object)
			}

			applied := k.Create(ctx, k.manifest("apply"))
			k.apply(ctx, applied, map[string]any{"finalizers": []string{first}})
			k.Delete(ctx, applied)
			Expect(k.Get(ctx, applied)).To(And(BeTerminating(), HaveFinalizers(first)))
			k.apply(ctx, applied, nil)
			k.expectDeletedOnce(ctx, applied)
		})

	o.must("A terminating object with three finalizers must remain until the last one is removed, in any order.",
		Behavior("finalizers.any-order", Core, AnyResource, Source(inAnyOrder.source), Promise(inAnyOrder.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			for _, order := range [][]string{{first, second, third}, {third, second, first}, {second, third, first}} {
				object := k.terminating(ctx, "ends-with-"+order[2][len(Domain)+1:], first, second, third)

				k.Update(ctx, object, WithoutFinalizers(order[0]))
				Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(order[1], order[2])))
				k.Update(ctx, object, WithoutFinalizers(order[1]))
				Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(order[2])))
				k.Update(ctx, object, WithoutFinalizers(order[2]))
				Expect(k.TryGet(ctx, object)).To(BeGone())
			}
		})

	o.must("Adding a finalizer to a terminating object by update or patch must be refused with 422.",
		Behavior("finalizers.no-additions-while-terminating", Core, AnyResource, Source(onlyRemoved.source), Promise(onlyRemoved.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "closed", first)

			Expect(k.TryUpdate(ctx, object, WithFinalizers(second))).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(k.TryPatch(ctx, object, types.MergePatchType,
				map[string]any{"metadata": map[string]any{"finalizers": []string{first, second}}},
			)).To(HaveStatusCode(http.StatusUnprocessableEntity))
			Expect(k.TryPatch(ctx, object, types.JSONPatchType,
				[]map[string]any{{"op": "add", "path": "/metadata/finalizers/-", "value": second}},
			)).To(HaveStatusCode(http.StatusUnprocessableEntity))

			Expect(k.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	o.must("Adding or removing the finalizers of an object that is not terminating must not delete the object.",
		Behavior("finalizers.changes-before-deletion", Core, AnyResource, Source(emptied.source), Promise(emptied.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.Create(ctx, k.manifest("alive"), WithFinalizers(first))

			Expect(k.Update(ctx, object, WithFinalizers(second))).To(HaveFinalizers(first, second))
			Expect(k.Update(ctx, object, WithoutFinalizers(first))).To(HaveFinalizers(second))
			Expect(k.Update(ctx, object, WithoutFinalizers(second))).To(HaveFinalizers())

			Expect(k.Get(ctx, object)).To(And(BeSameObjectAs(object), Not(BeTerminating())))
		})

	o.must("Reordering the finalizers of a terminating object must be accepted and must not release the object.",
		Behavior("finalizers.reorder", Core, AnyResource, Source(objectMeta),
			Promise("finalizers is a shared field, any actor with permission can reorder it.")), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "reordered", first, second, third)

			k.Update(ctx, object, func(object *Object) {
				finalizers := object.GetFinalizers()
				slices.Reverse(finalizers)
				object.SetFinalizers(finalizers)
			})

			Expect(k.Get(ctx, object)).To(And(
				BeSameObjectAs(object), HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizers(first, second, third)))
		})

	o.must("A repeated delete of a terminating object must be accepted and leave its deletionTimestamp and finalizers "+
		"unchanged.",
		Behavior("finalizers.repeated-delete", Core, AnyResource, Source(notPostponed.source), Promise(notPostponed.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "repeated", first)
			k.Tick(ctx)

			for _, options := range [][]DeleteOption{{}, {Grace(60)}, {Background}} {
				Expect(Require(k.TryDelete(ctx, object, options...))).To(BeAccepted())
				Expect(k.Get(ctx, object)).To(And(
					BeSameObjectAs(object), HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizers(first)))
			}
		})

	o.must("A delete with grace period 0 must not remove an object with a finalizer.",
		Behavior("finalizers.grace-zero", Core, AnyResource, Source(prevented.source), Promise(prevented.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			living := k.Create(ctx, k.manifest("living"), WithFinalizers(first))
			terminating := k.terminating(ctx, "terminating", first)

			for _, object := range []*Object{living, terminating} {
				k.Delete(ctx, object, Grace(0))
				Expect(k.Get(ctx, object)).To(And(BeSameObjectAs(object), BeTerminating(), HaveFinalizers(first)))
			}
		})

	o.observed("A terminating object accepts updates and patches of its annotations.",
		Behavior("finalizers.writable-while-terminating", Observed, AnyResource, Source(store)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "writable", first)

			k.Update(ctx, object, WithMetadata(map[string]any{"annotations": map[string]any{Domain + "/note": "by update"}}))
			Expect(k.Get(ctx, object).GetAnnotations()).To(HaveKeyWithValue(Domain+"/note", "by update"))
			k.Patch(ctx, object, types.MergePatchType,
				map[string]any{"metadata": map[string]any{"annotations": map[string]any{Domain + "/note": "by patch"}}})

			written := k.Get(ctx, object)
			Expect(written.GetAnnotations()).To(HaveKeyWithValue(Domain+"/note", "by patch"))
			Expect(written).To(And(HaveDeletionTimestamp(object.GetDeletionTimestamp()), HaveFinalizers(first)))
		})

	o.must("Creating an object with the name of a terminating object must be refused with 409 until that object is removed.",
		Behavior("finalizers.name-in-use", Core, AnyResource, Source(oneOfAName.source), Promise(oneOfAName.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "taken", first)

			Expect(k.TryCreate(ctx, k.manifest("taken"))).To(HaveStatusCode(http.StatusConflict))
			k.Update(ctx, object, WithoutFinalizers(first))

			Expect(k.Create(ctx, k.manifest("taken")).GetUID()).NotTo(Equal(object.GetUID()), "the new object has another uid")
		})

	Specify("An unqualified finalizer name on an object of a built-in kind must be refused with 422.",
		Behavior("finalizers.name-must-be-qualified", Core, Source(qualified.source), Promise(qualified.quote)), func(ctx SpecContext) {
			for _, kind := range o.cluster.Served(ctx, fixtures.ConfigMap, fixtures.ReplicaSet) {
				Expect(o.cluster.TryCreate(ctx, kind("unqualified"), WithFinalizers(unqualifiedName))).
					To(HaveStatusCode(http.StatusUnprocessableEntity))
			}
		})

	o.observed("An object with both finalizers of the garbage collector, orphan and foregroundDeletion, is refused with 422.",
		Behavior("finalizers.collector-finalizers-exclude-each-other", Observed, AnyResource, Source("k8s.io/apimachinery/pkg/api/validation/objectmeta.go")), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			both := WithFinalizers(metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents)
			Expect(k.TryCreate(ctx, k.manifest("both"), both)).To(HaveStatusCode(http.StatusUnprocessableEntity))
		})

	o.observed("A delete of an object with a finalizer increments metadata.generation by one, and a repeated delete does not "+
		"increment it again.",
		Behavior("finalizers.generation-once", Observed, Source(store)), fixtures.ReplicaSet, func(ctx SpecContext, k kind) {
			object := k.Create(ctx, k.manifest("generation"), WithFinalizers(first))
			Expect(object.GetGeneration()).To(BeNumerically(">", 0), "the kind has a generation")

			k.Delete(ctx, object)
			Expect(k.Get(ctx, object)).To(HaveGeneration(object.GetGeneration() + 1))
			k.Delete(ctx, object)
			Expect(k.Get(ctx, object)).To(HaveGeneration(object.GetGeneration() + 1))
		})

	o.must("A delete with another uid must be refused with 409 and change nothing.",
		Behavior("finalizers.preconditions", Core, AnyResource, Source(mustBeFulfilled.source), Promise(mustBeFulfilled.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			k.preconditions(ctx)
		})

	o.must("A dry-run delete, or a dry-run removal of the last finalizer, must change nothing.",
		Behavior("finalizers.dry-run", Core, AnyResource, Source(notPersisted.source), Promise(notPersisted.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			k.dryRun(ctx)
		})
}
