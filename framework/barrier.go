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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// canaries is the number of dependents of a barrier's owner. The collector has several workers, so several canaries are better evidence
// than one.
const canaries = 3

// AwaitCollector is the barrier behind every "is not collected". It creates an owner with a few dependents, deletes the owner, and waits
// until the garbage collector has deleted the dependents. The collector reads the events of a kind in order, so by then it has processed
// all earlier events of the canaries' kind. Then it waits for the settling time, in which a faulty collector could still act, or
// for as long as the collector needed for the canaries, if that is longer.
//
// The canaries are of the kinds of the given objects; ConfigMaps without any.
func (c *Cluster) AwaitCollector(ctx context.Context, like ...*Object) {
	ginkgo.GinkgoHelper()
	if len(like) == 0 {
		like = []*Object{fixtures.ConfigMap("canary")}
	}
	c.settle(ctx, c.settlingAfter(c.awaitCanaries(ctx, canaries, like)))
}

// maxSettling limits the settling time on a busy cluster, as a multiple of the usual one.
const maxSettling = 10

// settlingAfter returns the settling time after a barrier that took this long, unless the user chose one.
func (c *Cluster) settlingAfter(took time.Duration) time.Duration {
	usual := c.session.SettlingTime()
	if c.session.Settle != 0 {
		return usual
	}
	return max(usual, min(took, maxSettling*usual))
}

// AwaitCollectorSync is the barrier before a deletion. It waits until the garbage collector knows all objects of the given kinds that were
// created before this call. The collector has one watch for each kind, and a deletion waits for, or orphans, only the dependents that it
// knows.
func (c *Cluster) AwaitCollectorSync(ctx context.Context, like ...*Object) {
	ginkgo.GinkgoHelper()
	c.awaitCanaries(ctx, 1, like)
}

// awaitCanaries creates an owner with some dependents of each kind, deletes it, and waits until the collector has deleted them. It returns
// how long the collector took.
func (c *Cluster) awaitCanaries(ctx context.Context, count int, like []*Object) (took time.Duration) {
	ginkgo.GinkgoHelper()
	if lost := c.session.LostGarbageCollector; lost != "" {
		ginkgo.Fail(lost)
	}
	var dependents []*Object
	for _, manifest := range oneOfEachKind(like) {
		if c.isResourceUnderTest(manifest) { // values that the server set for one object may not be valid for another
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
	deleted := time.Now()
	for _, dependent := range dependents { // several kinds may come in any order
		c.awaitCanary(ctx, dependent)
	}
	return time.Since(deleted)
}

// awaitCanary waits until the garbage collector has deleted a canary. After a failure, later barriers of the run fail at once, because the
// collector does not work.
func (c *Cluster) awaitCanary(ctx context.Context, dependent *Object) {
	ginkgo.GinkgoHelper()
	history := c.History(dependent)
	waiting := gomega.NewGomega(func(message string, skip ...int) {
		if c.recovers(ctx, message) {
			return
		}
		message = describe.Message(message)
		_, broken := history.Events()
		if broken == nil && ctx.Err() == nil {
			c.lostGarbageCollector = fmt.Sprintf("The garbage collector does not work: it did not delete %s, a dependent that %s made for a barrier, within %s",
				client.Title(dependent), c.behavior, c.session.Timeout())
			c.session.LostGarbageCollector = c.lostGarbageCollector
			message = c.lostGarbageCollector + "\n" + message
		}
		ginkgo.Fail(message, append(skip, 0)[0]+1)
	})
	waiting.Eventually(ctx, history).WithTimeout(c.session.Timeout()).Should(HaveObserved(Deleted(dependent)),
		"the garbage collector must delete the canary of a barrier")
}

// oneOfEachKind keeps the first object of each kind.
func oneOfEachKind(objects []*Object) []*Object {
	seen := map[schema.GroupVersionKind]bool{}
	return slices.DeleteFunc(slices.Clone(objects), func(object *Object) bool {
		known := seen[object.GroupVersionKind()]
		seen[object.GroupVersionKind()] = true
		return known
	})
}

// Canary returns the manifest of a barrier's canary, of the kind of an object that may come from the server.
func Canary(like *Object) *Object {
	manifest := like.DeepCopy()
	if like.GetKind() == "Pod" { // admission may have added fields that it would add again
		manifest = fixtures.UnscheduledPod("canary")
	}
	delete(manifest.Object, "status")
	manifest.Object["metadata"] = map[string]any{"name": "canary", "labels": map[string]any{client.CanaryLabel: "true"}}
	return manifest
}

// Now returns the server's clock, in whole seconds, from the creationTimestamp of a new object. The clocks of the cluster and of the runner
// may differ.
func (c *Cluster) Now(ctx context.Context) time.Time {
	ginkgo.GinkgoHelper()
	return c.Create(ctx, fixtures.ConfigMap("clock-"+rand.String(6))).GetCreationTimestamp().Time
}

// Outlast waits until the server's clock has passed a time, and then for the settling time.
func (c *Cluster) Outlast(ctx context.Context, moment time.Time) {
	ginkgo.GinkgoHelper()
	c.pass(ctx, moment.Sub(c.Now(ctx)))
	c.Settle(ctx)
}

// Tick waits for the next second of the server's clock. Timestamps have whole seconds, so a timestamp that moves can be recognized only in
// another second.
func (c *Cluster) Tick(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c.pass(ctx, time.Second)
}

// Settle waits for the run's settling time (--settle), with which a barrier ends, and for watches that were interrupted meanwhile.
func (c *Cluster) Settle(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c.settle(ctx, c.session.SettlingTime())
}

func (c *Cluster) settle(ctx context.Context, duration time.Duration) {
	ginkgo.GinkgoHelper()
	before, interrupted := c.session.Watches.Interruptions()
	c.pass(ctx, duration)
	if after, now := c.session.Watches.Interruptions(); now || interrupted || after != before {
		c.syncWatches(ctx)
	}
}

// pass waits where nothing can be watched.
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
