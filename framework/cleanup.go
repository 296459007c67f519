package framework

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	ginkgotypes "github.com/onsi/ginkgo/v2/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/causes"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// cleanUp ends a spec: it adds the evidence to Ginkgo's report and removes the spec's objects, including holds. It does not wait for the
// cluster or for finalizers of other controllers: no name is used twice in a run, and teardown waits for everything.
func (c *Cluster) cleanUp(ctx ginkgo.SpecContext) {
	c.session.Recovers = nil
	evidence, removal := c.evidence(ctx), c.session.Removal()
	if c.session.KeepFailed && failed(evidence) {
		evidence.Kept, evidence.KeptIn = c.id, c.session.Namespace
		removal.Except = func(object *Object) bool { return client.Keepable(object) && c.isInOwnNamespace(object) }
	}
	evidence.Attach()
	// In reverse order: custom resources before their definition, content before its namespace, and workloads before pods that they would
	// recreate.
	for _, collection := range slices.Backward(c.used) {
		// Teardown retries failures and reports them.
		if c.hasOthers(collection) {
			_, _ = c.session.Harness.RemoveEach(ctx, collection, c.selector(), removal)
		} else {
			_ = c.session.Harness.Clear(ctx, collection, c.selector(), removal)
		}
	}
	c.session.Watches.Drop(func(collection client.Collection) bool {
		return slices.Contains(c.namespaces, collection.Namespace) || c.endsWithSpec(collection.Resource.Group)
	})
}

// failed reports whether the current spec has shown that the cluster does not do what its behavior states.
func failed(evidence specs.Evidence) bool {
	shown := ginkgo.CurrentSpecReport().State.Is(ginkgotypes.SpecStateFailed | ginkgotypes.SpecStatePanicked | ginkgotypes.SpecStateTimedout)
	return shown && evidence.SkipReason == "" && evidence.RunError == ""
}

// isInOwnNamespace reports whether an object is cluster-scoped, or in the namespace of the worker or one of the spec's.
func (c *Cluster) isInOwnNamespace(object *Object) bool {
	namespace := object.GetNamespace()
	return namespace == "" || namespace == c.session.Namespace || slices.Contains(c.namespaces, namespace)
}

// endsWithSpec reports whether an API group may be gone after the spec, because the spec created its definition.
func (c *Cluster) endsWithSpec(group string) bool {
	return strings.HasSuffix(group, c.Group()) || group == c.session.SpareGroup()
}

// evidence returns the requests and events of the spec and, if it failed, why objects still exist.
func (c *Cluster) evidence(ctx context.Context) specs.Evidence {
	events, lost := c.session.Watches.Journal.Read(nil)
	evidence := specs.Evidence{
		Timeline: v1alpha1.Timeline{Requests: c.session.Recorder.Take(), Events: c.session.Recorder.TakeEvents()}, LostGarbageCollector: c.lostGarbageCollector,
	}
	last := map[types.UID]*unstructured.Unstructured{}
	for _, event := range events {
		evidence.Timeline.Events = append(evidence.Timeline.Events, observe(event, last[event.Object.GetUID()]))
		last[event.Object.GetUID()] = event.Object
	}
	slices.SortStableFunc(evidence.Timeline.Events, func(a, b v1alpha1.Observation) int { return a.At.Compare(b.At) })
	for _, reviewer := range c.reviewers {
		evidence.Timeline.Reviews = append(evidence.Timeline.Reviews, reviewer.Observations(c.session.Harness)...)
	}
	report := ginkgo.CurrentSpecReport()
	if !report.Failed() {
		return evidence
	}
	behavior, _ := specs.BehaviorOf(report)
	evidence.Explanation = describe.Explain(events, events)
	evidence.Cause = causes.Of(evidence.Timeline, Domain)
	evidence.RunError = cmp.Or(c.runError, c.lostNode(ctx, last))
	hold := c.noteHold(&evidence, behavior, c.foreignHold(events, evidence.Timeline.Requests))
	evidence.SkipReason = cmp.Or(c.refusedCreation(ctx, events), hold, foreignDisruption(events, evidence.Timeline.Requests))
	if ended := outrun(events, behavior); ended != "" { // it may be faster the next time, and cannot be tested if it never is
		evidence.SkipReason, evidence.RunError = cmp.Or(evidence.SkipReason, ended), cmp.Or(evidence.RunError, ended)
	}
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

// observe converts an event for reports. Before is the object in the event before, nil for the first.
func observe(event journal.Event, before *unstructured.Unstructured) v1alpha1.Observation {
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
		Changes:           describe.Changes(before, object),
		Writers:           describe.Writers(before, object),
		Released:          releases(event, before),
		Phase:             phase,
		Containers:        describe.ContainerStates(object),
	}
}

// releases returns the finalizers that an object had before an event. The last event of an object has those that were removed at its end.
func releases(event journal.Event, before *unstructured.Unstructured) []v1alpha1.Release {
	var released []v1alpha1.Release
	add := func(object *unstructured.Unstructured, removed func(finalizer string) bool) {
		for _, finalizer := range object.GetFinalizers() {
			if removed(finalizer) {
				released = append(released, v1alpha1.Release{Finalizer: finalizer, SetBy: describe.FinalizerManagers(object, finalizer)})
			}
		}
	}
	if before != nil {
		add(before, func(finalizer string) bool { return !slices.Contains(event.Object.GetFinalizers(), finalizer) })
	}
	if event.Type == watch.Deleted {
		add(event.Object, func(string) bool { return true })
	}
	return released
}
