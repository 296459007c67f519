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
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// Children records what the controller of the resource under test creates: all objects of every watchable kind that appear in a namespace,
// regardless of labels.
type Children struct {
	cluster *framework.Cluster
	watches *journal.Watches
}

const (
	// reactionTimeout is the time in which a controller must react to a new object. Most need a fraction of a second: adding a finalizer or
	// creating a child has nothing to wait for.
	reactionTimeout = 10 * time.Second
	// idleTime is the time without changes to an object and its children after which its controller is assumed to have finished.
	idleTime = 2 * time.Second
	// builtIn is the field manager of the built-in controllers.
	builtIn = "kube-controller-manager"
)

// records are resources whose objects describe other objects, on their own schedule.
var records = []schema.GroupResource{
	corev1.Resource("events"), {Group: eventsv1.GroupName, Resource: "events"},
}

// WatchChildren starts to watch the namespace. Kinds that the credentials may not watch are left out. The spec is skipped when the resource
// under test is cluster-scoped, because its children may be in any namespace.
func WatchChildren(ctx context.Context, c *framework.Cluster) *Children {
	ginkgo.GinkgoHelper()
	if c.CollectionOf(ctx, c.Prepare(ctx, fixtures.ConfigMap("any"))).Namespace == "" {
		ginkgo.Skip("the resource is cluster-scoped: a controller may create objects for it in any namespace, which the run cannot watch")
	}
	collections, err := c.Session().Harness.Removable(c.Namespace())
	if err != nil {
		c.Check(ctx, framework.Response{Request: "discover the resources of a namespace", Err: err})
	}
	children := &Children{cluster: c, watches: journal.NewWatches(c.Session().Harness, "")}
	ginkgo.DeferCleanup(children.watches.Stop)
	for _, collection := range collections {
		if slices.Contains(records, collection.Resource.GroupResource()) {
			continue
		}
		response := children.watches.Cover(ctx, collection)
		if response.Err != nil && !isUnwatchable(response.Err) {
			c.Check(ctx, response)
		}
	}
	return children
}

// isUnwatchable reports whether a kind cannot be watched: a permission is missing, or it is not served, such as an aggregated API whose
// server is down.
func isUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsServiceUnavailable(err)
}

// Of returns the children of an object as they were created, in order of arrival: objects whose owner references name it, and objects
// without an owner whose name, labels or annotations contain its name. Objects of built-in controllers are not included.
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

// AwaitIdle waits until the controller has reacted to a new object, and then until neither the object nor its children change for a while.
// It returns the children. The spec is skipped when the controller does not react.
func (c *Children) AwaitIdle(ctx context.Context, object *framework.Object) []*framework.Object {
	ginkgo.GinkgoHelper()
	patience := c.cluster.Session().Slowed(reactionTimeout)
	err := wait.PollUntilContextTimeout(ctx, session.MemoryPolling, patience, true, func(context.Context) (bool, error) {
		return c.hasReacted(object), nil
	})
	switch {
	case ctx.Err() != nil:
		ginkgo.Fail(fmt.Sprintf("interrupted while waiting for a controller: %v", context.Cause(ctx)))
	case err != nil:
		ginkgo.Skip(fmt.Sprintf("the controller neither updated %s nor created an object for it within %s", client.Title(object), patience))
	}
	c.awaitIdle(ctx, object)
	return c.Of(object)
}

// awaitIdle waits until an object and its children have not changed for a while.
func (c *Children) awaitIdle(ctx context.Context, object *framework.Object) {
	ginkgo.GinkgoHelper()
	seen, since := 0, time.Now()
	quiet := c.cluster.Session().Slowed(idleTime)
	// A controller that never rests, such as one that writes the time, is not an error.
	_ = wait.PollUntilContextTimeout(ctx, session.MemoryPolling, c.cluster.Session().Timeout(), true, func(context.Context) (bool, error) {
		if now := len(c.about(object)); now != seen {
			seen, since = now, time.Now()
		}
		return time.Since(since) >= quiet, nil
	})
}

// hasReacted reports whether an object got a finalizer, was written, or has children.
func (c *Children) hasReacted(object *framework.Object) bool {
	ginkgo.GinkgoHelper()
	return slices.ContainsFunc(c.about(object), func(event journal.Event) bool {
		return event.Object.GetUID() != object.GetUID() || event.Type != watch.Added || len(finalizersOfOthers(event.Object)) > 0
	})
}

// about returns the events of an object and of its children.
func (c *Children) about(object *framework.Object) []journal.Event {
	ginkgo.GinkgoHelper()
	return c.events(func(event journal.Event) bool {
		return event.Object.GetUID() == object.GetUID() || isChild(event.Object, object)
	})
}

// events returns recorded events, except those of canaries.
func (c *Children) events(wanted func(journal.Event) bool) []journal.Event {
	ginkgo.GinkgoHelper()
	events, err := c.watches.Journal.Read(func(event journal.Event) bool { return !client.IsCanary(event.Object) && wanted(event) })
	if err != nil {
		c.cluster.Check(context.Background(), framework.Response{Request: "watch children", Err: err})
	}
	return events
}

// AwaitFinalizer waits as AwaitIdle does, and returns the object as it was when it first had a finalizer that the spec did not add. The
// spec is skipped when it gets none.
func (c *Children) AwaitFinalizer(ctx context.Context, object *framework.Object) *framework.Object {
	ginkgo.GinkgoHelper()
	c.AwaitIdle(ctx, object)
	for _, event := range c.about(object) {
		if event.Object.GetUID() == object.GetUID() && len(finalizersOfOthers(event.Object)) > 0 {
			return event.Object
		}
	}
	ginkgo.Skip(fmt.Sprintf("the controller adds no finalizer to %s", client.Title(object)))
	return nil
}

// finalizersOfOthers returns the finalizers of an object except the harness's.
func finalizersOfOthers(object *framework.Object) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool { return finalizer == framework.Hold })
}

// isChild reports whether an object names another one as Of requires.
func isChild(made, object *framework.Object) bool {
	if made.GetUID() == object.GetUID() {
		return false
	}
	owners := made.GetOwnerReferences()
	if len(owners) > 0 {
		return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return refersTo(owner, object) })
	}
	return mentions(made, object.GetName()) && !slices.ContainsFunc(made.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == builtIn
	})
}

// refersTo reports whether an owner reference refers to an object, correctly or not.
func refersTo(reference metav1.OwnerReference, object *framework.Object) bool {
	return reference.UID == object.GetUID() || reference.Name == object.GetName()
}

// mentions reports whether an object's name, labels or annotations contain a name.
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
