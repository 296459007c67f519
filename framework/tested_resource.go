package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

// What a run tests in the place of ConfigMaps may have controllers: others take finalizers off it, write it between a
// read and a write, and make dependents of it. Specs are written as if there were none; what comes between is waited
// for, or done again, here.

// isTestedResource says that an object is of the kind that is tested in the place of ConfigMaps, in a spec that knows nothing
// of its controllers.
func (c *Cluster) isTestedResource(object *Object) bool {
	tested := c.session.Resource
	return tested != nil && !c.expectsOtherManagers && tested.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind()
}

// deletionOf is what a delete of an object asks for. Where the kind that is tested in the place of ConfigMaps orphans
// dependents unless told otherwise, it is told so, as kubectl tells it; an object that carries a finalizer of the
// garbage collector's says it itself.
func (c *Cluster) deletionOf(ctx context.Context, object *Object, options []DeleteOption) *DeleteRequest {
	ginkgo.GinkgoHelper()
	asked := deletion(options)
	if c.session.OrphansByDefault && c.isTestedResource(object) && asked.isSilent() && !c.saysItself(ctx, object) {
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
// not know that there was something in between. It is only of the kind that is tested in the place of ConfigMaps:
// whoever names another expects its controllers.
func (c *Cluster) awaitOthers(ctx context.Context, response Response) Response {
	ginkgo.GinkgoHelper()
	if left := response.Object; !c.dryRun && response.Err == nil && left != nil && c.isTestedResource(left) && heldByOtherManagers(left) {
		gomega.Eventually(ctx, c.History(left)).Should(HaveObserved(Deleted(left)), "nothing but finalizers of others keeps it")
	}
	return response
}

// awaitOthersOfAll is awaitOthers for all that this spec made of an object's kind.
func (c *Cluster) awaitOthersOfAll(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	if !c.isTestedResource(c.session.Harness.StandInFor(like)) {
		return
	}
	objects, response := c.session.Harness.List(ctx, c.CollectionOf(ctx, like), c.selector())
	for _, object := range objects {
		response.Object = object
		c.awaitOthers(ctx, response)
	}
}

// SkipIfHeldByOtherManagers skips a spec on how an object ends where others hold it to the last.
func SkipIfHeldByOtherManagers(object *Object) {
	ginkgo.GinkgoHelper()
	if object != nil && heldByOtherManagers(object) {
		ginkgo.Skip(fmt.Sprintf("others take the last finalizer off a %s: %s", object.GetKind(), strings.Join(object.GetFinalizers(), ", ")))
	}
}

// rebased is an object that is to be written, as if others had written before it was read: its resourceVersion and the
// finalizers of others are those that it has now. It is nil where somebody else has written since.
func (c *Cluster) rebased(ctx context.Context, object *Object) *Object {
	ginkgo.GinkgoHelper()
	now := c.session.Harness.Get(ctx, object)
	if now.Err != nil || now.Object == nil {
		return nil
	}
	var then *Object
	_ = wait.PollUntilContextTimeout(ctx, syncPolling, c.session.WaitTimeout, true, func(context.Context) (bool, error) {
		seen, err := c.session.Watches.Journal.Read(func(event journal.Event) bool { return event.Object.GetUID() == now.Object.GetUID() })
		for _, event := range seen {
			if event.Object.GetResourceVersion() == object.GetResourceVersion() {
				then = event.Object
			}
			if event.Object.GetResourceVersion() == now.Object.GetResourceVersion() || event.Type == watch.Deleted {
				return true, nil // the watch shows versions in their order
			}
		}
		return false, err
	})
	if then == nil || now.Object.GetUID() != object.GetUID() || !ChangedByOtherManagers(then, now.Object) {
		return nil
	}
	ours := slices.DeleteFunc(object.GetFinalizers(), client.IsOfOtherManager)
	others := slices.DeleteFunc(now.Object.GetFinalizers(), func(finalizer string) bool { return !client.IsOfOtherManager(finalizer) })
	later := object.DeepCopy()
	later.SetResourceVersion(now.Object.GetResourceVersion())
	later.SetFinalizers(append(ours, others...))
	return later
}
