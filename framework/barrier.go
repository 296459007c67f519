package framework

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

// canaries is how many dependents a barrier's owner has. The collector's workers run side by side, so one canary is
// evidence and a few are better.
const canaries = 3

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
	c.settle(ctx)
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
		ginkgo.Fail("not waited for the garbage collector again: " + lost)
	}
	var dependents []*Object
	for _, manifest := range oneOfEachKind(like) {
		if c.isJudged(manifest) { // what the server has put into one may not be given to another
			manifest = fixtures.ConfigMap("canary")
		}
		manifest = canary(manifest)
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
// this run: it does nothing, and each barrier would find that out anew.
func (c *Cluster) awaitCanary(ctx context.Context, dependent *Object) {
	ginkgo.GinkgoHelper()
	history := c.History(dependent)
	waiting := gomega.NewGomega(func(message string, skip ...int) {
		_, broken := history.Events()
		if broken == nil && ctx.Err() == nil {
			c.lostGarbageCollector = fmt.Sprintf("it left %s, a canary of %s, for %s", client.Title(dependent),
				ginkgo.CurrentSpecReport().LeafNodeText, c.session.WaitTimeout)
			c.session.LostGarbageCollector = c.lostGarbageCollector
		}
		ginkgo.Fail(message, append(skip, 0)[0]+1)
	})
	waiting.Eventually(ctx, history).WithTimeout(c.session.WaitTimeout).Should(HaveObserved(Deleted(dependent)),
		"the garbage collector takes the canaries of a barrier")
}

// AwaitKubelet is the barrier behind every "the kubelet knows": it binds a pod to a node and waits until the node's kubelet
// has written down that it started with it. A kubelet reads the events of its pods in order, so it has then seen all that
// happened to them before this call.
func (c *Cluster) AwaitKubelet(ctx context.Context, node string) {
	ginkgo.GinkgoHelper()
	pod := c.Create(ctx, fixtures.NodePod("canary", fixtures.Container{Name: "main", OnTerm: "exit 0"}), OnNode(node), WithLabel(client.CanaryLabel, "true"))
	gomega.Eventually(ctx, c.History(pod)).Should(HaveObserved(Matching(pod, haveStarted())), "the kubelet takes the canary of a barrier")
}

// AwaitNamespaceController is the barrier behind every "the namespace stays": it waits until the namespace controller has
// gone through the content of namespaces that are being deleted, which it says in their conditions, and lets the settling time
// pass after it. It begins 5 s after the delete.
func (c *Cluster) AwaitNamespaceController(ctx context.Context, namespaces ...*Object) {
	ginkgo.GinkgoHelper()
	attended := property("be attended to by the namespace controller", func(namespace *Object) bool {
		return len(describe.Conditions(namespace)) > 0
	})
	for _, namespace := range namespaces {
		gomega.Eventually(ctx, c.History(namespace)).Should(HaveObserved(Matching(namespace, attended)))
	}
	c.settle(ctx)
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

// canary makes a manifest of its kind from an object that may have been read from the server.
func canary(like *Object) *Object {
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
	c.settle(ctx)
}

// Tick waits until the server's clock shows another second. What is written is stamped in whole seconds, so a stamp that is
// moved can only be told from one that is not when it is written in another second.
func (c *Cluster) Tick(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c.pass(ctx, time.Second)
}

// settle lets the run's settling time pass. What a watch that was interrupted meanwhile has not shown yet is waited for.
func (c *Cluster) settle(ctx context.Context) {
	ginkgo.GinkgoHelper()
	before, interrupted := c.session.Watches.Interruptions()
	c.pass(ctx, c.session.Settle)
	if after, now := c.session.Watches.Interruptions(); now || interrupted || after != before {
		c.catchUp(ctx)
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
		ginkgo.Fail(fmt.Sprintf("interrupted while %s were to pass: %v", duration, context.Cause(ctx)))
	}
}

// AwaitController is the barrier behind every "is not replaced" and "is not adopted": it makes a workload of each kind
// named, which must select what no other does, and waits until its controller says that it has what it wants. A controller
// reads the events of pods in order and takes its workloads one after the other, so it has then looked at all that happened
// before this call. Afterwards it lets the settling time pass. It is no barrier for Jobs, whose controller puts off what it
// hears of pods for a second.
func (c *Cluster) AwaitController(ctx context.Context, workloads ...*Object) {
	ginkgo.GinkgoHelper()
	created := make([]*Object, len(workloads))
	for i, manifest := range workloads {
		created[i] = c.Create(ctx, manifest, c.named("canary-"+rand.String(6)), WithLabel(client.CanaryLabel, "true"), onePod)
	}
	for _, workload := range created {
		gomega.Eventually(ctx, c.History(workload)).Should(HaveObserved(Matching(workload, haveSettled())), "a controller looks at the canary of a barrier")
	}
	c.settle(ctx)
}

// onePod has a workload with a number of pods want one.
func onePod(workload *Object) {
	if _, counts, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas"); counts {
		WithField(int64(1), "spec", "replicas")(workload)
	}
}

// haveSettled matches a workload that has as many pods as it wants, by its own status.
func haveSettled() types.GomegaMatcher {
	number := func(object *Object, path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(object.Object, path...)
		return value
	}
	return property("have as many pods as it wants", func(workload *Object) bool {
		return number(workload, "status", "observedGeneration") == workload.GetGeneration() &&
			number(workload, "status", "replicas") == number(workload, "spec", "replicas") &&
			number(workload, "status", "currentNumberScheduled") == number(workload, "status", "desiredNumberScheduled")
	})
}
