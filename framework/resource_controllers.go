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

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// The resource under test may have controllers: they remove finalizers from its objects, write them between a read and a write, and create
// dependents. Specs are written as if there were none; the functions here wait for controllers, or retry.

// isResourceUnderTest reports whether an object is of the resource under test, in a spec that does not test its controller.
func (c *Cluster) isResourceUnderTest(object *Object) bool {
	return !c.expectsOtherManagers && c.isKindUnderTest(object)
}

// isKindUnderTest reports whether an object is of the kind that is tested instead of ConfigMaps.
func (c *Cluster) isKindUnderTest(object *Object) bool {
	tested := c.session.Resource
	return tested != nil && tested.GroupVersionKind().GroupKind() == object.GroupVersionKind().GroupKind()
}

// deletionOf returns the request to delete an object. If the default of the resource under test is to orphan dependents, the request sets
// background propagation, as kubectl does, unless the object has a finalizer of the garbage collector.
func (c *Cluster) deletionOf(ctx context.Context, object *Object, options []DeleteOption) *DeleteRequest {
	ginkgo.GinkgoHelper()
	request := deletion(options)
	if c.session.OrphansByDefault && c.isResourceUnderTest(object) && request.isSilent() && !c.hasCollectorFinalizer(ctx, object) {
		Background(request)
	}
	return request
}

// hasCollectorFinalizer reports whether the stored object has a finalizer of the garbage collector.
func (c *Cluster) hasCollectorFinalizer(ctx context.Context, object *Object) bool {
	stored := c.session.Harness.Get(ctx, object)
	return stored.Object != nil && slices.ContainsFunc(stored.Object.GetFinalizers(), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
	})
}

// awaitOtherManagers waits until other managers have removed their finalizers from an object that only they still hold. It applies only to
// the resource under test: specs that use another kind expect its controllers.
func (c *Cluster) awaitOtherManagers(ctx context.Context, response Response) Response {
	ginkgo.GinkgoHelper()
	if left := response.Object; !c.dryRun && response.Err == nil && left != nil && c.isResourceUnderTest(left) && heldByOtherManagers(left) {
		gomega.Eventually(ctx, c.History(left)).Should(HaveObserved(Deleted(left)), "only finalizers of other managers remain")
	}
	return response
}

// awaitOtherManagersOfAll is awaitOtherManagers for this spec's objects of a kind.
func (c *Cluster) awaitOtherManagersOfAll(ctx context.Context, like *Object) {
	ginkgo.GinkgoHelper()
	if !c.isResourceUnderTest(c.session.Harness.StandInFor(like)) {
		return
	}
	objects, response := c.session.Harness.List(ctx, c.CollectionOf(ctx, like), c.selector())
	for _, object := range objects {
		response.Object = object
		c.awaitOtherManagers(ctx, response)
	}
}

// SkipIfHeldByOtherManagers skips a spec about the end of an object when other managers remove the last finalizer.
func SkipIfHeldByOtherManagers(object *Object) {
	ginkgo.GinkgoHelper()
	if object != nil && heldByOtherManagers(object) {
		ginkgo.Skip(fmt.Sprintf("another controller removes the last finalizer of the %s: %s", object.GetKind(), strings.Join(object.GetFinalizers(), ", ")))
	}
}

// rebased returns an object to write on top of later writes of other managers: it has the current resourceVersion and their current
// finalizers. It is nil when someone else has written since.
func (c *Cluster) rebased(ctx context.Context, object *Object) *Object {
	ginkgo.GinkgoHelper()
	now := c.session.Harness.Get(ctx, object)
	if now.Err != nil || now.Object == nil {
		return nil
	}
	var then *Object
	_ = wait.PollUntilContextTimeout(ctx, syncPolling, c.session.Timeout(), true, func(context.Context) (bool, error) {
		seen, err := c.session.Watches.Journal.Read(func(event journal.Event) bool { return event.Object.GetUID() == now.Object.GetUID() })
		for _, event := range seen {
			if event.Object.GetResourceVersion() == object.GetResourceVersion() {
				then = event.Object
			}
			if event.Object.GetResourceVersion() == now.Object.GetResourceVersion() || event.Type == watch.Deleted {
				return true, nil // the watch delivers versions in order
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
