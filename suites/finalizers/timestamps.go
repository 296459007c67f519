package finalizers

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
)

// timestamps are the specs about when a deletion began, and that it cannot be undone.
func (o *kindSpecs) timestamps() {
	o.must("The deletionTimestamp of an object with a finalizer must be the time of the delete, regardless of gracePeriodSeconds.",
		Behavior("finalizers.timestamp-is-request-time", Core, AnyResource, Source(marked.source), Promise(marked.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			for name, options := range map[string][]DeleteOption{"by-default": nil, "with-grace": {Grace(60)}} {
				object := k.Create(ctx, k.manifest(name), WithFinalizers(first))

				before := k.Now(ctx)
				k.Delete(ctx, object, options...)
				after := k.Now(ctx)

				deleted := k.Get(ctx, object).GetDeletionTimestamp()
				Expect(deleted).NotTo(BeNil(), "the object has a deletionTimestamp")
				Expect(deleted.Time).To(BeTemporally(">=", before), "%s: deletionTimestamp is not before the request", name)
				Expect(deleted.Time).To(BeTemporally("<=", after), "%s: deletionTimestamp is not after the response", name)
			}
		})

	o.must("An update, patch, apply or status write must not clear or postpone the deletionTimestamp of a terminating object, or "+
		"change its deletionGracePeriodSeconds.",
		Behavior("finalizers.timestamp-is-immutable", Core, AnyResource, Source(notPostponed.source), Promise(notPostponed.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			object := k.terminating(ctx, "marked", first)
			k.manifest = k.FirstServed(ctx, fixtures.Service, k.manifest)
			withStatus := k.terminating(ctx, "with-status", first)

			// Refused or ignored: what counts is what is stored.
			for what, change := range undoing(object) {
				k.TryUpdate(ctx, object, WithMetadata(change))
				Expect(k.Get(ctx, object)).To(markedAs(object), "update to %s", what)
				k.TryPatch(ctx, object, apitypes.MergePatchType, map[string]any{"metadata": change})
				Expect(k.Get(ctx, object)).To(markedAs(object), "patch to %s", what)
				k.TryApply(ctx, object, Domain, change)
				Expect(k.Get(ctx, object)).To(markedAs(object), "apply to %s", what)
				k.TryUpdate(ctx, withStatus, WithMetadata(change), "status")
				Expect(k.Get(ctx, withStatus)).To(markedAs(withStatus), "update of the status to %s", what)
				k.TryPatch(ctx, withStatus, apitypes.MergePatchType, map[string]any{"metadata": change}, "status")
				Expect(k.Get(ctx, withStatus)).To(markedAs(withStatus), "patch of the status to %s", what)
			}
		})

	o.must("A delete with another resourceVersion must be refused with 409 and change nothing, even with the uid of the object.",
		Behavior("finalizers.version-precondition", Core, AnyResource, Source(mustBeFulfilled.source), Promise(mustBeFulfilled.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			for name, options := range map[string][]ObjectOption{"free-versioned": nil, "held-versioned": {WithFinalizers(first)}} {
				created := k.Create(ctx, k.manifest(name), options...)
				object := k.Update(ctx, created, WithLabel(Domain+"/note", "written"))

				stale := IfVersion(created.GetResourceVersion())
				for _, conditions := range [][]DeleteOption{{stale}, {stale, IfUID(object.GetUID())}} {
					Expect(k.TryDelete(ctx, object, conditions...)).To(HaveStatusCode(http.StatusConflict))
					Expect(k.Get(ctx, object)).To(k.asStored(object))
				}
				k.Delete(ctx, object, IfVersion(object.GetResourceVersion()), IfUID(object.GetUID()))
				Expect(k.TryGet(ctx, object)).To(Or(BeGone(), BeTerminating()))
			}
		})

	o.must("A dry-run delete of an object with a finalizer must return a Status, or the object with a deletionTimestamp and the "+
		"finalizer of the propagation policy, as the delete does.",
		Behavior("finalizers.dry-run-response", Core, AnyResource, Source(closeToReal.source), Promise(closeToReal.quote)), fixtures.ConfigMap, func(ctx SpecContext, k kind) {
			const status = "Status"
			object := k.Create(ctx, k.manifest("held-shown"), WithFinalizers(first))

			var kinds []string
			for _, shown := range []struct {
				policy    DeleteOption
				finalizer string
			}{{Background, first}, {Foreground, metav1.FinalizerDeleteDependents}, {Orphan, metav1.FinalizerOrphanDependents}} {
				response := Require(k.TryDelete(ctx, object, DryRun, shown.policy))
				if kinds = append(kinds, response.Object.GetKind()); response.Object.GetKind() != status {
					Expect(response).To(And(BeSameObjectAs(object), BeTerminating(), HaveFinalizer(first), HaveFinalizer(shown.finalizer)))
				}
			}
			Expect(kinds).To(HaveEach(Require(k.TryDelete(ctx, object)).Object.GetKind()), "a dry-run returns the same kind as a delete")
		})
}

// undoing are changes of metadata that would undo or postpone the deletion of an object.
func undoing(object *Object) map[string]map[string]any {
	return map[string]map[string]any{
		"clear both":         {"deletionTimestamp": nil, "deletionGracePeriodSeconds": nil},
		"move the timestamp": {"deletionTimestamp": object.GetDeletionTimestamp().Add(1000 * time.Second).UTC().Format(time.RFC3339)},
		"raise the grace":    {"deletionGracePeriodSeconds": int64(60)},
	}
}

// markedAs matches an object that is terminating exactly as another state of it.
func markedAs(object *Object) types.GomegaMatcher {
	graceOf := func(object *Object) *int64 { return object.GetDeletionGracePeriodSeconds() }
	return And(BeSameObjectAs(object), HaveDeletionTimestamp(object.GetDeletionTimestamp()),
		WithTransform(graceOf, Equal(graceOf(object))))
}
