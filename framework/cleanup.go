package framework

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
	"github.com/deletion-conformance/deletion-conformance/framework/specs"
)

// cleanUp ends a spec: it hands the evidence to Ginkgo's report and removes what the spec made, holds included. It does
// not wait for the cluster, nor for finalizers of other controllers: no name is used twice in a run, and the run's end waits for
// everything.
func (c *Cluster) cleanUp(ctx ginkgo.SpecContext) {
	c.evidence(ctx).Attach()
	// Backwards: what a definition defines goes before the definition, what is in a namespace before the namespace, and a
	// workload before the pods that it would make again.
	for _, collection := range slices.Backward(c.used) {
		// What cannot be removed now is removed at the run's end, and reported there.
		if c.hasOthers(collection) {
			_, _ = c.session.Harness.RemoveEach(ctx, collection, c.selector(), c.session.Removal())
		} else {
			_ = c.session.Harness.Clear(ctx, collection, c.selector(), c.session.Removal())
		}
	}
	c.session.Watches.Leave(func(collection client.Collection) bool {
		return slices.Contains(c.namespaces, collection.Namespace) || c.endsWithSpec(collection.Resource.Group)
	})
}

// endsWithSpec says that an API group may be gone when the spec ends: it is of a definition that the spec made.
func (c *Cluster) endsWithSpec(group string) bool {
	return strings.HasSuffix(group, c.Group()) || group == c.session.SpareGroup()
}

// evidence is what the spec did and saw, and, if it failed, why things are still there.
func (c *Cluster) evidence(ctx context.Context) specs.Evidence {
	events, lost := c.session.Watches.Journal.Read(nil)
	evidence := specs.Evidence{
		Timeline: v1alpha1.Timeline{Requests: c.session.Recorder.Take()}, LostGarbageCollector: c.lostGarbageCollector,
	}
	for _, event := range events {
		evidence.Timeline.Events = append(evidence.Timeline.Events, observe(event))
	}
	for _, reviewer := range c.reviewers {
		evidence.Timeline.Reviews = append(evidence.Timeline.Reviews, reviewer.Observations(c.session.Harness)...)
	}
	report := ginkgo.CurrentSpecReport()
	if !report.Failed() {
		return evidence
	}
	behavior, _ := specs.BehaviorOf(report)
	evidence.Explanation = describe.Explain(events, events)
	evidence.RunError = c.runError
	evidence.Prevented = cmp.Or(c.refusedCreation(ctx, events), c.foreignHold(events, evidence.Timeline.Requests),
		foreignDisruption(events, evidence.Timeline.Requests, behavior.Features))
	for _, watched := range c.watches {
		if _, err := watched.Events(); err != nil {
			evidence.RunError = err.Error()
		}
	}
	if lost != nil {
		evidence.RunError = lost.Error()
	}
	return evidence
}

// observe reduces an event to what reports show.
func observe(event journal.Event) v1alpha1.Observation {
	object, kind := event.Object, event.Object.GroupVersionKind()
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return v1alpha1.Observation{
		At:   event.At,
		Type: string(event.Type),
		ObjectReference: v1alpha1.ObjectReference{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Canary: client.IsCanary(object),
		},
		ResourceVersion:   object.GetResourceVersion(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
		GraceSeconds:      object.GetDeletionGracePeriodSeconds(),
		Finalizers:        object.GetFinalizers(),
		Owners:            object.GetOwnerReferences(),
		Phase:             phase,
		Containers:        describe.ContainerStates(object),
	}
}
