package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
)

// Children shows what the controller of the resource that is tested makes of objects: all that appears in a namespace from the
// moment on when the watch began, of every kind that can be watched there, whatever labels it has.
type Children struct {
	cluster *framework.Cluster
	watches *journal.Watches
}

const (
	// controllerActs is within what time a controller does something about a new object: most take a fraction of a second, and
	// one that gives it a finalizer or makes something for it has nothing to wait for before it does.
	controllerActs = 10 * time.Second
	// controllerRests is how long nothing must happen to an object and its children before its controller is thought to be done.
	controllerRests = 2 * time.Second
	// builtIn is the field manager of the built-in controllers.
	builtIn = "kube-controller-manager"
)

// records are resources whose objects tell of others, and follow a time of their own.
var records = []schema.GroupResource{
	corev1.Resource("events"), {Group: eventsv1.GroupName, Resource: "events"},
}

// WatchChildren begins to watch what appears in the namespace. What the credentials do not allow to watch is not seen. The spec
// is skipped where the resource that is tested is cluster-scoped: what is made for one of its objects may be in any namespace.
func WatchChildren(ctx context.Context, c *framework.Cluster) *Children {
	ginkgo.GinkgoHelper()
	if c.CollectionOf(ctx, c.Prepare(ctx, fixtures.ConfigMap("any"))).Namespace == "" {
		ginkgo.Skip("its objects are cluster-scoped: what a controller makes for them may be in any namespace, and not all can be watched")
	}
	collections, err := c.Session().Harness.Removable(c.Namespace())
	if err != nil {
		c.Check(ctx, framework.Response{Request: "find what a namespace may hold", Err: err})
	}
	children := &Children{cluster: c, watches: journal.NewWatches(c.Session().Harness, "")}
	ginkgo.DeferCleanup(children.watches.Stop)
	for _, collection := range collections {
		if slices.Contains(records, collection.Resource.GroupResource()) {
			continue
		}
		response := children.watches.Cover(ctx, collection)
		if response.Err != nil && !isLeftOut(response.Err) {
			c.Check(ctx, response)
		}
	}
	return children
}

// isLeftOut says of a kind that it cannot be watched: the credentials do not allow it, or nobody serves it, such as an
// aggregated API whose server is away.
func isLeftOut(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsServiceUnavailable(err)
}

// Of are the objects that were made for an object, as they were created, in the order of their arrival: those that name it in an
// owner reference, and those without an owner that have its name in their own, in a label or in an annotation. What built-in
// controllers make is none of them: that belongs to something else.
func (c *Children) Of(object *framework.Object) []*framework.Object {
	ginkgo.GinkgoHelper()
	var children []*framework.Object
	for _, event := range c.events(func(event journal.Event) bool {
		return event.Type == watch.Added && isChild(event.Object, object)
	}) {
		children = append(children, event.Object)
	}
	return children
}

// AwaitRest waits until the controller has done something about a new object, and then nothing more for a while: neither to it
// nor to its children. It returns these. The spec is skipped where the controller does nothing.
func (c *Children) AwaitRest(ctx context.Context, object *framework.Object) []*framework.Object {
	ginkgo.GinkgoHelper()
	patience := c.cluster.Session().Slowed(controllerActs)
	err := wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, func(context.Context) (bool, error) {
		return c.hasActed(object), nil
	})
	switch {
	case ctx.Err() != nil:
		ginkgo.Fail(fmt.Sprintf("interrupted while a controller was to act: %v", context.Cause(ctx)))
	case err != nil:
		ginkgo.Skip(fmt.Sprintf("its controller neither wrote %s nor made anything for it within %s", client.Title(object), patience))
	}
	c.rest(ctx, object)
	return c.Of(object)
}

// rest waits until nothing has happened for a while to an object and its children.
func (c *Children) rest(ctx context.Context, object *framework.Object) {
	ginkgo.GinkgoHelper()
	seen, since := 0, time.Now()
	quiet := c.cluster.Session().Slowed(controllerRests)
	// A controller that never rests, as one that writes down the time, is not waited for longer.
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, c.cluster.Session().WaitTimeout, true, func(context.Context) (bool, error) {
		if now := len(c.about(object)); now != seen {
			seen, since = now, time.Now()
		}
		return time.Since(since) >= quiet, nil
	})
}

// hasActed says whether somebody has given an object a finalizer, written it, or made something for it.
func (c *Children) hasActed(object *framework.Object) bool {
	ginkgo.GinkgoHelper()
	return slices.ContainsFunc(c.about(object), func(event journal.Event) bool {
		return event.Object.GetUID() != object.GetUID() || event.Type != watch.Added || len(finalizersOfOthers(event.Object)) > 0
	})
}

// about are the events of an object and of its children.
func (c *Children) about(object *framework.Object) []journal.Event {
	ginkgo.GinkgoHelper()
	return c.events(func(event journal.Event) bool {
		return event.Object.GetUID() == object.GetUID() || isChild(event.Object, object)
	})
}

// events are those that were seen, of what is no canary.
func (c *Children) events(wanted func(journal.Event) bool) []journal.Event {
	ginkgo.GinkgoHelper()
	events, err := c.watches.Journal.Read(func(event journal.Event) bool { return !client.IsCanary(event.Object) && wanted(event) })
	if err != nil {
		c.cluster.Check(context.Background(), framework.Response{Request: "watch children", Err: err})
	}
	return events
}

// AwaitFinalizer waits as AwaitRest does, and returns the object as it was when it first had a finalizer that the spec has not
// given it. The spec is skipped where it got none.
func (c *Children) AwaitFinalizer(ctx context.Context, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	c.AwaitRest(ctx, object)
	for _, event := range c.about(object) {
		if event.Object.GetUID() == object.GetUID() && len(finalizersOfOthers(event.Object)) > 0 {
			return event.Object
		}
	}
	ginkgo.Skip(fmt.Sprintf("its controller gives %s no finalizer", client.Title(object)))
	return nil
}

// finalizersOfOthers are the finalizers of an object but for the harness's own.
func finalizersOfOthers(object *framework.Object) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool { return finalizer == framework.Hold })
}

// isChild says whether something was made for an object: it names it.
func isChild(made, object *framework.Object) bool {
	if made.GetUID() == object.GetUID() {
		return false
	}
	owners := made.GetOwnerReferences()
	if len(owners) > 0 {
		return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return isMeant(owner, object) })
	}
	return mentions(made, object.GetName()) && !slices.ContainsFunc(made.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == builtIn
	})
}

// isMeant says whether an owner reference means an object, be it right about it or not.
func isMeant(reference metav1.OwnerReference, object *framework.Object) bool {
	return reference.UID == object.GetUID() || reference.Name == object.GetName()
}

// mentions says whether an object has a name in its own, in a label or in an annotation.
func mentions(object *framework.Object, name string) bool {
	if strings.Contains(object.GetName(), name) {
		return true
	}
	for _, texts := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, text := range texts {
			if strings.Contains(text, name) {
				return true
			}
		}
	}
	return false
}
