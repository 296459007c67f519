package framework

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

// canaries is how many dependents a barrier's owner has. The collector's workers run side by side, so one canary is
// evidence and a few are better.
const canaries = 3

// lostGarbageCollector begins the messages of all barriers that fail for the same canary.
const lostGarbageCollector = "The garbage collector does not work: "

// AwaitCollector is the barrier behind every "is not collected": it makes an owner with a few dependents, deletes it,
// and waits until the garbage collector has taken them. The collector reads the events of a kind in order, so it has
// then seen all that happened to objects of the canaries' kind before this call. Afterwards it lets the settling time
// pass, in which a collector that means to misbehave still can.
//
// The canaries are of the kind of the objects named; ConfigMaps when none is.
func (c *Cluster) AwaitCollector(ctx context.Context, like ...*Object) {
	ginkgo.GinkgoHelper()
	if len(like) == 0 {
		like = []*Object{fixtures.ConfigMap("canary")}
	}
	c.awaitCanaries(ctx, canaries, like)
	c.Settle(ctx)
}

// AwaitCollectorSync is the barrier before a deletion: it waits until the garbage collector has learned of all objects of the
// kinds of those named that were created before this call. It learns of each kind on a watch of its own, and an owner that is
// deleted waits for, or orphans, the dependents that it knows.
func (c *Cluster) AwaitCollectorSync(ctx context.Context, like ...*Object) {
	ginkgo.GinkgoHelper()
	c.awaitCanaries(ctx, 1, like)
}

// awaitCanaries makes an owner with some dependents of each kind, deletes it, and waits until the collector has taken them.
func (c *Cluster) awaitCanaries(ctx context.Context, count int, like []*Object) {
	ginkgo.GinkgoHelper()
	if lost := c.session.LostGarbageCollector; lost != "" {
		ginkgo.Fail(lostGarbageCollector + lost)
	}
	var dependents []*Object
	for _, manifest := range oneOfEachKind(like) {
		if c.isTestedResource(manifest) { // what the server has put into one may not be given to another
			manifest = fixtures.ConfigMap("canary")
		}
		manifest = Canary(manifest)
		owner := c.Create(ctx, manifest)
		for i := range count {
			manifest.SetName(fmt.Sprintf("canary-dependent-%d", i))
			dependents = append(dependents, c.Create(ctx, manifest, OwnedBy(owner)))
		}
		c.Delete(ctx, owner, Background)
	}
	for _, dependent := range dependents { // of several kinds, maybe, whose order is not certain
		c.awaitCanary(ctx, dependent)
	}
}

// awaitCanary waits until the garbage collector has taken a canary. A collector that does not is not waited for again in
// this run: it does nothing, and each barrier would find that out again.
func (c *Cluster) awaitCanary(ctx context.Context, dependent *Object) {
	ginkgo.GinkgoHelper()
	history := c.History(dependent)
	waiting := gomega.NewGomega(func(message string, skip ...int) {
		message = describe.Message(message)
		_, broken := history.Events()
		if broken == nil && ctx.Err() == nil {
			c.lostGarbageCollector = fmt.Sprintf("it did not delete %s, a dependent that %s made for a barrier, within %s",
				client.Title(dependent), c.behavior, c.session.WaitTimeout)
			c.session.LostGarbageCollector = c.lostGarbageCollector
			message = lostGarbageCollector + c.lostGarbageCollector + "\n" + message
		}
		ginkgo.Fail(message, append(skip, 0)[0]+1)
	})
	waiting.Eventually(ctx, history).WithTimeout(c.session.WaitTimeout).Should(HaveObserved(Deleted(dependent)),
		"the garbage collector must delete the canary of a barrier")
}

// oneOfEachKind leaves out what is of the kind of an object before it.
func oneOfEachKind(objects []*Object) []*Object {
	seen := map[schema.GroupVersionKind]bool{}
	return slices.DeleteFunc(slices.Clone(objects), func(object *Object) bool {
		known := seen[object.GroupVersionKind()]
		seen[object.GroupVersionKind()] = true
		return known
	})
}

// Canary is a manifest of the canary of a barrier, of the kind of an object that may have been read from the server.
func Canary(like *Object) *Object {
	manifest := like.DeepCopy()
	if like.GetKind() == "Pod" { // admission may have added to the one that was read what it adds again
		manifest = fixtures.UnscheduledPod("canary")
	}
	delete(manifest.Object, "status")
	manifest.Object["metadata"] = map[string]any{"name": "canary", "labels": map[string]any{client.CanaryLabel: "true"}}
	return manifest
}

// Now is the server's clock, to the second: the creationTimestamp of an object made for it. The clocks of the cluster and
// of the runner may differ.
func (c *Cluster) Now(ctx context.Context) time.Time {
	ginkgo.GinkgoHelper()
	return c.Create(ctx, fixtures.ConfigMap("clock-"+rand.String(6))).GetCreationTimestamp().Time
}

// Outlast waits until a moment of the server's clock has passed, and the settling time after it.
func (c *Cluster) Outlast(ctx context.Context, moment time.Time) {
	ginkgo.GinkgoHelper()
	c.pass(ctx, moment.Sub(c.Now(ctx)))
	c.Settle(ctx)
}

// Tick waits until the server's clock shows another second. What is written is stamped in whole seconds, so a stamp that is
// moved can only be told from one that is not when it is written in another second.
func (c *Cluster) Tick(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c.pass(ctx, time.Second)
}

// Settle lets the run's settling time (--settle) pass, with which a barrier ends. What a watch that was interrupted meanwhile has not shown yet is waited for.
func (c *Cluster) Settle(ctx context.Context) {
	ginkgo.GinkgoHelper()
	before, interrupted := c.session.Watches.Interruptions()
	c.pass(ctx, c.session.Settle)
	if after, now := c.session.Watches.Interruptions(); now || interrupted || after != before {
		c.syncWatches(ctx)
	}
}

// pass lets time pass where nothing but the clock can tell.
func (c *Cluster) pass(ctx context.Context, duration time.Duration) {
	ginkgo.GinkgoHelper()
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		ginkgo.Fail(fmt.Sprintf("interrupted while waiting for %s: %v", duration, context.Cause(ctx)))
	}
}
