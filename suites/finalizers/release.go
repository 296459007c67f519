package finalizers

import (
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// createsByUpdate reports whether an update creates a missing object, as for a Lease. A dry-run determines that for the resource under test
// (--resource); for the kinds of the suites it is false.
func (k kind) createsByUpdate(ctx SpecContext) bool {
	GinkgoHelper()
	if k.Session().Resource == nil {
		return false
	}
	never, err := k.Session().Client.Completed(k.Prepare(ctx, k.manifest("never")))
	Expect(err).NotTo(HaveOccurred())
	return k.DryRun().Send(ctx, never, Request{Method: http.MethodPut, Body: never.Object}).Err == nil
}

// releases are the specs about the removal of finalizers, and about what starts and ends a deletion.
func (o *kindSpecs) releases() {
	o.observed("A repeated delete of a terminating object returns the stored object, keeps the resourceVersion and causes no watch "+
		"event.",
		Behavior("finalizers.repeated-delete-writes-nothing", Observed, AnyResource, Source("kubernetes#73098")), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "quiet", first)
			k.Tick(ctx)

			for _, options := range [][]DeleteOption{{}, {Grace(60)}, {Grace(0)}, {Background}} {
				Expect(Require(k.TryDelete(ctx, object, options...))).To(And(HaveStatusCode(http.StatusOK), BeUnchangedSince(object)))
				Expect(k.Get(ctx, object)).To(BeUnchangedSince(object))
			}

			written := k.Update(ctx, object, WithLabel(Domain+"/note", "written")) // events before it are observed before it
			Eventually(ctx, k.History(object)).Should(HaveObservedOnly(Added(object), Terminating(object), Matching(object, BeUnchangedSince(written))))
		})

	o.observed("Creating an object with the name of a terminating object fails with a message that the object is being deleted.",
		Behavior("finalizers.name-in-use-message", Observed, AnyResource, Source(store)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			k.terminating(ctx, "explained", first)

			Expect(k.TryCreate(ctx, k.manifest("explained")).Message()).To(HavePrefix("object is being deleted: "))
		})

	o.must("A deletionTimestamp and deletionGracePeriodSeconds in a create request must be ignored or refused.",
		Behavior("finalizers.create-ignores-deletion-timestamp", Core, AnyResource, Source(setByServer.source), Promise(setByServer.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			deleted := WithMetadata(map[string]any{
				"deletionTimestamp": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), "deletionGracePeriodSeconds": int64(0),
			})
			for name, options := range map[string][]ObjectOption{
				"born": {deleted}, "born-with-finalizer": {deleted, WithFinalizers(first)},
			} {
				response := k.TryCreate(ctx, k.manifest(name), options...)
				if apierrors.IsInvalid(response.Err) || apierrors.IsBadRequest(response.Err) {
					Expect(k.TryGet(ctx, response.Sent())).To(BeGone())
					continue
				}
				born := Require(response).Object
				Expect(born).NotTo(BeTerminating())
				Expect(born.GetDeletionGracePeriodSeconds()).To(BeNil(), "deletionGracePeriodSeconds is not set")
				Expect(k.Update(ctx, born, WithLabel(Domain+"/note", "written"))).To(And(BeSameObjectAs(born), Not(BeTerminating())))
			}
		})

	o.must("An update, patch or status write that sets deletionTimestamp must not start the deletion of an object.",
		Behavior("finalizers.only-delete-starts-deletion", Core, Source(setByServer.source), Promise(setByServer.quote)), fixtures.Service, func(ctx SpecContext, k kind) {
			k.manifest = k.FirstServed(ctx, k.manifest, fixtures.ConfigMap)
			free := k.Create(ctx, k.manifest("free"))
			held := k.Create(ctx, k.manifest("held-alive"), WithFinalizers(first))

			deleted := map[string]any{"deletionTimestamp": time.Now().UTC().Format(time.RFC3339), "deletionGracePeriodSeconds": int64(0)}
			for _, object := range []*Object{free, held} {
				for _, subresources := range [][]string{nil, {"status"}} {
					// The update may be rejected or ignored: only the stored object counts.
					k.TryUpdate(ctx, object, WithMetadata(deleted), subresources...)
					Expect(k.Get(ctx, object)).NotTo(BeTerminating(), "update of %v", subresources)
					k.TryPatch(ctx, object, types.MergePatchType, map[string]any{"metadata": deleted}, subresources...)
					Expect(k.Get(ctx, object)).NotTo(BeTerminating(), "patch of %v", subresources)
				}
				Expect(k.Get(ctx, object)).To(BeSameObjectAs(object))
			}
		})

	o.must("Of concurrent updates from one resourceVersion that each remove a finalizer, exactly one must succeed, and the "+
		"others must be refused with 409 and change nothing.",
		Behavior("finalizers.concurrent-removal", Core, AnyResource, Source(staleIsConflict.source), Promise(staleIsConflict.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			holders := []string{first, second, third}
			object := k.terminating(ctx, "raced", holders...)

			codes := make([]int, len(holders))
			for i, response := range InParallel(len(holders), func(i int) Response {
				without := object.DeepCopy()
				WithoutFinalizers(holders[i])(without)
				return k.TryReplace(ctx, without)
			}) {
				codes[i] = response.StatusCode
			}

			Expect(codes).To(ConsistOf(http.StatusOK, http.StatusConflict, http.StatusConflict))
			removed := holders[slices.Index(codes, http.StatusOK)]
			others := slices.DeleteFunc(slices.Clone(holders), func(holder string) bool { return holder == removed })
			Expect(k.Get(ctx, object)).To(And(BeTerminating(), HaveFinalizers(others...)))
		})

	o.observed("A finalizer removal that names another uid is refused, with 409 for an update and 422 for a patch.",
		Behavior("finalizers.removal-with-other-uid", Observed, AnyResource, Source("k8s.io/apiserver/pkg/registry/rest/update.go")), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "namesake", first)

			late := object.DeepCopy()
			late.SetUID("somebody-else")
			WithoutFinalizers(first)(late)
			Expect(k.TryReplace(ctx, late)).To(HaveStatusCode(http.StatusConflict))
			Expect(k.TryPatch(ctx, object, types.MergePatchType,
				map[string]any{"metadata": map[string]any{"uid": "somebody-else", "finalizers": nil}},
			)).To(HaveStatusCode(http.StatusUnprocessableEntity))

			Expect(k.Get(ctx, object)).To(BeUnchangedSince(object))
		})

	o.observed("An update or patch of a removed object returns 404, an apply with its uid returns 409, and the object is not "+
		"created again.",
		Behavior("finalizers.writes-after-removal", Observed, AnyResource, Source(store)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "gone", first)
			k.Update(ctx, object, WithoutFinalizers(first))
			Expect(k.TryGet(ctx, object)).To(BeGone())

			whichever := object.DeepCopy()
			whichever.SetUID("")
			if !k.createsByUpdate(ctx) {
				Expect(k.TryReplace(ctx, whichever)).To(HaveStatusCode(http.StatusNotFound))
			}
			// Before 1.34 a server checks the uid first.
			Expect(k.TryReplace(ctx, object)).To(Or(HaveStatusCode(http.StatusNotFound), HaveStatusCode(http.StatusConflict)))
			Expect(k.TryPatch(ctx, object, types.MergePatchType, withoutFinalizers)).To(HaveStatusCode(http.StatusNotFound))
			Expect(k.TryPatch(ctx, object, types.JSONPatchType,
				[]map[string]any{{"op": "remove", "path": "/metadata/finalizers"}})).To(HaveStatusCode(http.StatusNotFound))
			Expect(k.TryApply(ctx, object, Domain, map[string]any{"name": object.GetName(), "uid": object.GetUID()})).To(HaveStatusCode(http.StatusConflict))

			Expect(k.TryGet(ctx, object)).To(BeGone())
		})

	o.observed("The DELETED event shows an object with its last finalizer, and the response to the removal of the finalizer shows "+
		"the object without it.",
		Behavior("finalizers.deleted-event-last-state", Observed, AnyResource, Source(store)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "last", first)

			released := k.Update(ctx, object, WithoutFinalizers(first))
			Expect(released).To(And(BeSameObjectAs(object), BeTerminating(), HaveFinalizers()))
			SkipIfHeldByOtherManagers(released)

			Eventually(ctx, k.History(object)).Should(HaveObserved(Deleted(object)))
			events, err := k.History(object).Events()
			Expect(err).NotTo(HaveOccurred())
			Expect(events[len(events)-1].Object).To(And(BeTerminating(), HaveFinalizers(first)))
		})
}
