package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// What a run judges in the place of ConfigMaps may have controllers: others take finalizers off it, write it between a
// read and a write, and make dependents of it. Specs are written as if there were none; what comes between is waited
// for, or done again, here.

// isJudged says that an object is of the kind that is judged in the place of ConfigMaps, in a spec that knows nothing
// of its controllers.
func (c *Cluster) isJudged(object *Object) bool {
	judged := c.session.Resource
	return judged != nil && !c.expectsOthers && judged.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind()
}

// OrJudged is a manifest of what a ConfigMap does not offer, in its place what is judged instead of ConfigMaps, whether
// that offers it or not.
func (c *Cluster) OrJudged(manifest func(name string) *Object) func(name string) *Object {
	if c.session.Resource == nil {
		return manifest
	}
	return fixtures.ConfigMap
}

// MustHaveStatus skips the spec where objects of a kind have no status subresource.
func (c *Cluster) MustHaveStatus(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	switch has, err := c.session.Harness.HasSubresource(c.collectionOf(ctx, object), "status"); {
	case err != nil:
		c.giveUp(ctx, Response{Request: "find the subresources of " + object.GetKind(), Err: err})
	case !has:
		ginkgo.Skip(fmt.Sprintf("a %s has no status subresource", object.GetKind()))
	}
}

// WritableStatus is a status that the server takes of an object, as a dry-run tells: an empty one, or where the kind
// requires more, the one that its fixture has or its schema suggests. Where rules that no schema spells out refuse
// that, too, it is the one that the object has, which changes nothing; nil if it has none.
func (c *Cluster) WritableStatus(ctx context.Context, object *Object) any {
	ginkgo.GinkgoHelper()
	for _, status := range []map[string]any{{}, c.session.Status} {
		body := map[string]any{"status": status}
		if !apierrors.IsInvalid(c.TryDryRunPatch(ctx, object, types.MergePatchType, body, "status").Err) {
			return status
		}
	}
	return c.Get(ctx, object).Object["status"]
}

// deletionOf is what a delete of an object asks for. Where the kind that is judged in the place of ConfigMaps orphans
// dependents unless told otherwise, it is told so, as kubectl tells it; an object that carries a finalizer of the
// garbage collector's says it itself.
func (c *Cluster) deletionOf(ctx context.Context, object *Object, options []DeleteOption) *DeleteRequest {
	ginkgo.GinkgoHelper()
	asked := deletion(options)
	if c.session.OrphansByDefault && c.isJudged(object) && asked.isSilent() && !c.saysItself(ctx, object) {
		Background(asked)
	}
	return asked
}

// saysItself says that an object, as it is stored, carries a finalizer of the garbage collector's.
func (c *Cluster) saysItself(ctx context.Context, object *Object) bool {
	stored := c.session.Harness.Get(ctx, object)
	return stored.Object != nil && slices.ContainsFunc(stored.Object.GetFinalizers(), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
	})
}

// awaitOthers waits until others have let go of what a write has left to them alone. Specs on what is gone then need
// not know that there was something in between. It is only of the kind that is judged in the place of ConfigMaps:
// whoever names another expects its controllers.
func (c *Cluster) awaitOthers(ctx context.Context, response Response) Response {
	ginkgo.GinkgoHelper()
	if left := response.Object; response.Err == nil && left != nil && c.isJudged(left) && heldByOthers(left) {
		gomega.Eventually(ctx, c.History(left)).Should(HaveObserved(Deleted(left)), "nothing but finalizers of others keeps it")
	}
	return response
}

// awaitOthersOfAll is awaitOthers for all that this spec made of an object's kind.
func (c *Cluster) awaitOthersOfAll(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	if !c.isJudged(c.session.Harness.StandInFor(like)) {
		return
	}
	objects, response := c.session.Harness.List(ctx, c.collectionOf(ctx, like), c.selector())
	for _, object := range objects {
		response.Object = object
		c.awaitOthers(ctx, response)
	}
}

// SkipIfHeldByOthers skips a spec on how an object ends where others hold it to the last.
func SkipIfHeldByOthers(object *Object) {
	ginkgo.GinkgoHelper()
	if object != nil && heldByOthers(object) {
		ginkgo.Skip(fmt.Sprintf("others take the last finalizer off a %s: %s", object.GetKind(), strings.Join(object.GetFinalizers(), ", ")))
	}
}

// SkipIfHurried skips a spec on a write that calls off the collector's delete of an object, where others have written
// that, too: so that they cannot keep it from deleting the collector then asks for whatever version there is
// (deleteObject in pkg/controller/garbagecollector/operations.go).
func (w *Webhook) SkipIfHurried(object *Object) {
	ginkgo.GinkgoHelper()
	for _, review := range w.Reviews(object) {
		only := DeleteOptionsOf(review).Preconditions
		if (only == nil || only.ResourceVersion == nil) && othersWrote(object, OldObjectOf(review)) {
			ginkgo.Skip(fmt.Sprintf("others write a %s when it is new, and the collector deletes whatever they made of it", object.GetKind()))
		}
	}
}

// SkipIfOwner skips a spec on objects that own nothing, where others make dependents of those of this kind: the garbage
// collector deletes such an object in the foreground when it deletes it for an owner that waits. It looks only where
// one is deleted so, which is all that tells it from those that own nothing.
func (c *Cluster) SkipIfOwner(ctx context.Context, object *Object) {
	ginkgo.GinkgoHelper()
	if !c.isJudged(object) || object.GetNamespace() == "" || !slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return
	}
	owner := c.Create(ctx, fixtures.ConfigMap("has-dependents"))
	var dependent string
	looking := gomega.NewGomega(func(string, ...int) {}) // none is no failure of this kind
	looking.Eventually(ctx, func() string {
		dependent = c.dependentOf(ctx, owner)
		return dependent
	}).WithTimeout(c.session.WaitTimeout).WithPolling(catchUpPolling).ShouldNot(gomega.BeEmpty())
	if dependent != "" {
		ginkgo.Skip(fmt.Sprintf("others make dependents of each %s (%s), which the garbage collector deletes first", object.GetKind(), dependent))
	}
}

// dependentOf is the title of something in an object's namespace that it owns; empty where nothing can be found.
func (c *Cluster) dependentOf(ctx context.Context, owner *Object) string {
	collections, _ := c.session.Harness.Removable(owner.GetNamespace())
	for _, collection := range collections {
		objects, _ := c.session.Harness.List(ctx, collection, "")
		for _, object := range objects {
			for _, reference := range object.GetOwnerReferences() {
				if reference.UID == owner.GetUID() {
					return client.Title(object)
				}
			}
		}
	}
	return ""
}

// rebased is an object that is to be written, as if others had written before it was read: its resourceVersion and the
// finalizers of others are those that it has now. It is nil where somebody else has written since.
func (c *Cluster) rebased(ctx context.Context, object *Object) *Object {
	ginkgo.GinkgoHelper()
	now := c.session.Harness.Get(ctx, object)
	if now.Err != nil || now.Object == nil {
		return nil
	}
	then, err := c.session.Watches.Journal.Read(func(event journal.Event) bool {
		return event.Object.GetUID() == object.GetUID() && event.Object.GetResourceVersion() == object.GetResourceVersion()
	})
	if err != nil || len(then) == 0 || now.Object.GetUID() != object.GetUID() || !othersWrote(then[0].Object, now.Object) {
		return nil
	}
	ours := slices.DeleteFunc(object.GetFinalizers(), isOthers)
	others := slices.DeleteFunc(now.Object.GetFinalizers(), func(finalizer string) bool { return !isOthers(finalizer) })
	later := object.DeepCopy()
	later.SetResourceVersion(now.Object.GetResourceVersion())
	later.SetFinalizers(append(ours, others...))
	return later
}
