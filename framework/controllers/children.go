package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/controller"
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
)

// WatchChildren starts to watch the namespace. Kinds that the credentials may not watch are left out. The spec is skipped when the resource
// under test is cluster-scoped, because its children may be in any namespace.
func WatchChildren(ctx context.Context, c *framework.Cluster) *Children {
	ginkgo.GinkgoHelper()
	if c.CollectionOf(ctx, c.Prepare(ctx, fixtures.ConfigMap("any"))).Namespace == "" {
		ginkgo.Skip("the resource is cluster-scoped: a controller may create objects for it in any namespace, which the run cannot watch")
	}
	children := &Children{cluster: c, watches: journal.NewWatches(c.Session().Harness, "")}
	ginkgo.DeferCleanup(children.watches.Stop)
	if response := controller.WatchChildren(ctx, c.Session().Harness, children.watches, c.Namespace()); response.Err != nil {
		c.Check(ctx, response)
	}
	return children
}

// Of returns the children of an object as they were created, in order of arrival: objects whose owner references name it, and objects
// without an owner whose name, labels or annotations contain its name. Objects of built-in controllers are not included.
func (c *Children) Of(object *framework.Object) []*framework.Object {
	ginkgo.GinkgoHelper()
	var children []*framework.Object
	for _, event := range c.events(func(event journal.Event) bool {
		return event.Type == watch.Added && controller.IsChild(event.Object, object)
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
		return event.Object.GetUID() == object.GetUID() || controller.IsChild(event.Object, object)
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
