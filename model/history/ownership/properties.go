// Package ownership checks what the garbage collector does with objects that own each other.
package ownership

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	garbageCollection   = "concepts/architecture/garbage-collection"
	objectMeta          = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	ownersAndDependents = "concepts/overview/working-with-objects/owners-dependents"
)

// Properties of the garbage collector.
var (
	Kept = &history.Property{ID: "explore.ownership.kept", Ordered: true, Rule: model.Rule{
		Text:    "The garbage collector must not delete an object while one of its owners exists and does not wait for it in foreground deletion.",
		Source:  ownersAndDependents,
		Promise: "the owner reference is treated as absent, and the dependent is subject to deletion once all owners are verified absent"}}
	Collected = &history.Property{ID: "explore.ownership.collected", Ordered: true, Rule: model.Rule{
		Text: "The garbage collector must delete an object when all its owners are gone.", Source: objectMeta,
		Promise: "If ALL objects in the list have been deleted, this object will be garbage collected."}}
	Completed = &history.Property{ID: "explore.ownership.completed", Ordered: true, Rule: model.Rule{
		Text: "The garbage collector must finish every foreground and orphaning deletion that nothing blocks.", Source: garbageCollection,
		Promise: "After deleting all the dependent objects it knows about, the controller deletes the owner object."}}
	Blocked = &history.Property{ID: "explore.ownership.blocked", Ordered: true, Rule: model.Rule{
		Text:   "An owner in foreground deletion must not be removed while a dependent that blocks it exists.",
		Source: ownersAndDependents, Promise: "the controller must delete dependent resources that also have " +
			"`ownerReferences.blockOwnerDeletion=true` before it deletes the owner"}}
	Orphaned = &history.Property{ID: "explore.ownership.orphaned", Ordered: true, Rule: model.Rule{
		Text:   "An owner that is deleted with propagationPolicy Orphan must not be removed while a dependent refers to it.",
		Source: ownersAndDependents, Promise: "If you specify an orphan deletion policy, Kubernetes adds the `orphan` finalizer so that " +
			"the controller ignores dependent resources after it deletes the owner object."}}
	Latest = &history.Property{ID: "explore.ownership.latest", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector deletes an object by its current owner references, not by those that it had before.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/operations.go"}}
	Cycles = &history.Property{ID: "explore.ownership.cycles", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector finishes foreground deletions of objects that block each other.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go"}}
	Recreated = &history.Property{ID: "explore.ownership.recreated", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector notices that an object is gone although another one has its name when an interrupted watch begins again.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/graph_builder.go"}}
	Overruled = &history.Property{ID: "explore.ownership.overruled", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A foreground or orphaning deletion stays one when the owner's own owners are gone, so that the garbage collector deletes it, too.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/operations.go"}}
)
