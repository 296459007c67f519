package history

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Property is what is checked of each history.
type Property struct {
	// ID is the property's stable name.
	ID string
	// Rule states it. Observed reports that no document promises it.
	Rule     model.Rule
	Observed bool
	// Upstream reports that Kubernetes itself was found to break it; docs/explore.md has the histories.
	Upstream bool
	// Ordered reports that the property can only be checked where resourceVersions can be compared.
	Ordered bool
}

// broken returns the violation of the property by an object.
func (p *Property) broken(name, format string, values ...any) Violation {
	return Violation{Property: p, Rule: p.Rule, Name: name, Request: -1, Stream: -1, Message: fmt.Sprintf(format, values...)}
}

const (
	apiConcepts         = "reference/using-api/api-concepts"
	garbageCollection   = "concepts/architecture/garbage-collection"
	objectMeta          = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	namespaces          = "tasks/administer-cluster/namespaces"
	ownersAndDependents = "concepts/overview/working-with-objects/owners-dependents"
	podLifecycle        = "concepts/workloads/pods/pod-lifecycle"
	store               = "k8s.io/apiserver/pkg/registry/generic/registry/store.go"
	usingFinalizers     = "book.kubebuilder.io/reference/using-finalizers"
	operatorSDK         = "sdk.operatorframework.io/docs/building-operators/golang/advanced-topics: handle cleanup on deletion"

	deletesEverything  = "This deletes _everything_ under the namespace!"
	removedByComponent = "Each entry is an identifier for the responsible component that will remove the entry from the list."
	nothingMissed      = "The overall **watch** mechanism allows a client to fetch the current state and then subscribe to subsequent " +
		"changes, without missing any events."
	allChangesAfter = "The watch events are for all changes after the provided resource version."
	orderable       = "Resource version strings are orderable as monotonically increasing integers within the same resource type " +
		"for all types served by kube-apiserver."
)

// The properties.
var (
	Linearizable = &Property{ID: "explore.object.one-order", Rule: model.Rule{
		Text: "One order of all requests on an object must explain every response.", Source: apiConcepts, Promise: model.Current.Promise}}
	AtomicRemoval = &Property{ID: "explore.object.atomic-removal", Observed: true, Upstream: true, Rule: model.Rule{
		Text: "A request that removes an object decides and removes at one moment.", Source: store}}
	Refusals = &Property{ID: "explore.object.refusals", Observed: true, Rule: model.Rule{
		Text: "A request is refused only for a reason that the object shows.", Source: store}}
	RefusedByVersion = &Property{ID: "explore.object.refused-by-version", Observed: true, Upstream: true, Rule: model.Rule{
		Text: "A delete that requires a resourceVersion is refused with 409 only while an object with another one exists.", Source: store}}
	RefusedByUID = &Property{ID: "explore.object.refused-by-uid", Rule: model.Rule{
		Text:   "A delete that requires a uid must be refused with 409 only while an object with another uid exists, and otherwise with 404.",
		Source: "api-conventions", Promise: "Indicates that the requested resource does not exist."}}
	SameVersion = &Property{ID: "explore.object.same-version", Rule: model.Rule{
		Text:   "Every response and event with the same resourceVersion of an object must show the same object.",
		Source: apiConcepts, Promise: model.NewVersion.Promise}}
	StaysGone = &Property{ID: "explore.object.stays-gone", Rule: model.Rule{
		Text:   "An object that was removed must not be seen again, in the same round or a later one, unless what shows it may be older than the removal.",
		Source: apiConcepts, Promise: model.Current.Promise}}
	CollectionRequests = &Property{ID: "explore.collection.decomposed", Observed: true, Rule: model.Rule{
		Text:   "A deletecollection deletes every object that its selector matched at one moment of the request, and no other.",
		Source: store}}
	ListSnapshot = &Property{ID: "explore.list.snapshot", Ordered: true, Rule: model.Rule{
		Text: "A list must contain the state of each object at the list's resourceVersion, on all its pages.", Source: apiConcepts,
		Promise: "the `resourceVersion` of the collection remains constant across each request, indicating the server is showing you a " +
			"consistent snapshot of the pods."}}
	ListForward = &Property{ID: "explore.list.never-older", Ordered: true, Rule: model.Rule{
		Text:   "A get or list must not be older than its resourceVersion parameter, or without one than any earlier response.",
		Source: apiConcepts, Promise: "Return data at least as new as the provided `resourceVersion`."}}
	WatchOrder = &Property{ID: "explore.watch.order", Ordered: true, Rule: model.Rule{
		Text: "A watch must deliver events in the order of their resourceVersions.", Source: apiConcepts, Promise: orderable}}
	WatchComplete = &Property{ID: "explore.watch.complete", Ordered: true, Rule: model.Rule{
		Text: "A watch must deliver every change after its resourceVersion.", Source: apiConcepts, Promise: nothingMissed}}
	WatchOnce = &Property{ID: "explore.watch.no-duplicates", Rule: model.Rule{
		Text: "A watch must deliver every change once.", Source: apiConcepts, Promise: allChangesAfter}}
	WatchResumed = &Property{ID: "explore.watch.resumed", Ordered: true, Rule: model.Rule{
		Text:   "A resumed watch must deliver exactly the changes after the resourceVersion that it resumes from.",
		Source: apiConcepts, Promise: allChangesAfter}}
	WatchSameOrder = &Property{ID: "explore.watch.same-order", Rule: model.Rule{
		Text: "Concurrent watches must deliver changes in the same order.", Source: "conformance: watch-consistency",
		Promise: "Ensure that concurrent watches are consistent with each other"}}
	WatchBookmarks = &Property{ID: "explore.watch.bookmarks", Ordered: true, Rule: model.Rule{
		Text: "A bookmark must follow every change up to its resourceVersion and precede every later one.", Source: apiConcepts,
		Promise: "mark that all changes up to a given `resourceVersion` the client is requesting have already been sent"}}
	WatchInitial = &Property{ID: "explore.watch.initial-events", Ordered: true, Rule: model.Rule{
		Text: "Initial events must build the state of all objects at the bookmark that ends them.", Source: apiConcepts,
		Promise: "the API server starts the watch stream with synthetic init events ... to build the whole state of all existing objects"}}
	WatchDeleted = &Property{ID: "explore.watch.final-state", Ordered: true, Rule: model.Rule{
		Text: "A DELETED event must show the last state of the object.", Source: "k8s.io/apimachinery/pkg/watch/watch.go",
		Promise: "If Type is Deleted: the state of the object immediately before deletion."}}
	WatchSelector = &Property{ID: "explore.watch.selector", Ordered: true, Rule: model.Rule{
		Text:    "A watch with a selector must deliver ADDED for an object that begins to match, and DELETED for one that stops matching.",
		Source:  "conformance: watch-configmaps-label-changed",
		Promise: "Ensure that a watched object stops meeting the requirements of a watch's selector, the watch will observe a delete"}}
)

// Properties of the garbage collector.
var (
	OwnershipKept = &Property{ID: "explore.ownership.kept", Ordered: true, Rule: model.Rule{
		Text:    "The garbage collector must not delete an object while one of its owners exists and does not wait for it in foreground deletion.",
		Source:  ownersAndDependents,
		Promise: "the owner reference is treated as absent, and the dependent is subject to deletion once all owners are verified absent"}}
	OwnershipCollected = &Property{ID: "explore.ownership.collected", Ordered: true, Rule: model.Rule{
		Text: "The garbage collector must delete an object when all its owners are gone.", Source: objectMeta,
		Promise: "If ALL objects in the list have been deleted, this object will be garbage collected."}}
	OwnershipCompleted = &Property{ID: "explore.ownership.completed", Ordered: true, Rule: model.Rule{
		Text: "The garbage collector must finish every foreground and orphaning deletion that nothing blocks.", Source: garbageCollection,
		Promise: "After deleting all the dependent objects it knows about, the controller deletes the owner object."}}
	OwnershipBlocked = &Property{ID: "explore.ownership.blocked", Ordered: true, Rule: model.Rule{
		Text:   "An owner in foreground deletion must not be removed while a dependent that blocks it exists.",
		Source: ownersAndDependents, Promise: "the controller must delete dependent resources that also have " +
			"`ownerReferences.blockOwnerDeletion=true` before it deletes the owner"}}
	OwnershipOrphaned = &Property{ID: "explore.ownership.orphaned", Ordered: true, Rule: model.Rule{
		Text:   "An owner that is deleted with propagationPolicy Orphan must not be removed while a dependent refers to it.",
		Source: ownersAndDependents, Promise: "If you specify an orphan deletion policy, Kubernetes adds the `orphan` finalizer so that " +
			"the controller ignores dependent resources after it deletes the owner object."}}
	OwnershipLatest = &Property{ID: "explore.ownership.latest", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector deletes an object by its current owner references, not by those that it had before.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/operations.go"}}
	OwnershipCycles = &Property{ID: "explore.ownership.cycles", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector finishes foreground deletions of objects that block each other.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/garbagecollector.go"}}
	OwnershipRecreated = &Property{ID: "explore.ownership.recreated", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "The garbage collector notices that an object is gone although another one has its name when an interrupted watch begins again.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/graph_builder.go"}}
	OwnershipOverruled = &Property{ID: "explore.ownership.overruled", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A foreground or orphaning deletion stays one when the owner's own owners are gone, so that the garbage collector deletes it, too.",
		Source: "k8s.io/kubernetes/pkg/controller/garbagecollector/operations.go"}}
)

// Properties of graceful deletion.
var (
	GraceDecreases = &Property{ID: "explore.grace.only-decreases", Ordered: true, Rule: model.Rule{
		Text:   "The deletionGracePeriodSeconds of a terminating pod must not increase, and its deletionTimestamp must not move to a later time.",
		Source: objectMeta, Promise: "Once the deletionTimestamp is set, this value may not be unset or be set further into the future, although it may be shortened"}}
	GraceExpired = &Property{ID: "explore.grace.expired", Ordered: true, Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A delete that shortens the grace period of a pod does not move a deletionTimestamp that has passed.",
		Source: "k8s.io/apiserver/pkg/registry/rest/delete.go"}}
	GraceRequested = &Property{ID: "explore.grace.requested", Ordered: true, Rule: model.Rule{
		Text:    "The deletionGracePeriodSeconds of a pod must be the gracePeriodSeconds of a delete, or its terminationGracePeriodSeconds.",
		Source:  "reference/kubernetes-api/definitions/delete-options-v1-meta",
		Promise: "The duration in seconds before the object should be deleted."}}
	GraceNeverEarly = &Property{ID: "explore.grace.never-early", Ordered: true, Rule: model.Rule{
		Text:    "A pod with a node must stay until its termination is confirmed, or a delete with gracePeriodSeconds 0 is requested.",
		Source:  podLifecycle,
		Promise: "When a force deletion is performed, the API server does not wait for confirmation from the kubelet that the Pod has been terminated"}}
	GraceImmediate = &Property{ID: "explore.grace.immediate", Ordered: true, Rule: model.Rule{
		Text:   "The deletionGracePeriodSeconds of a pod without a node is 0.",
		Source: "k8s.io/kubernetes/pkg/registry/core/pod/strategy.go"}, Observed: true}
)

// Properties of pods that a kubelet runs.
var (
	NodeFullGrace = &Property{ID: "explore.node.full-grace", Ordered: true, Rule: model.Rule{
		Text:    "A pod whose container ignores SIGTERM must stay until its grace period has expired.",
		Source:  podLifecycle,
		Promise: "Once the grace period has expired, the KILL signal is sent to any remaining processes"}}
	NodeRemoved = &Property{ID: "explore.node.removed", Ordered: true, Rule: model.Rule{
		Text:    "A pod must be removed when its grace period has expired and no finalizer holds it.",
		Source:  podLifecycle,
		Promise: "The kubelet triggers forcible removal of the Pod object from the API server, by setting grace period to 0 (immediate deletion)."}}
)

// Properties of namespaces.
var (
	NamespaceEmptied = &Property{ID: "explore.namespace.emptied", Rule: model.Rule{
		Text:   "No object of a namespace may exist after the namespace is gone.",
		Source: namespaces, Promise: deletesEverything}}
	NamespaceCompleted = &Property{ID: "explore.namespace.completed", Rule: model.Rule{
		Text:   "A terminating namespace must be removed when finalizers hold nothing in it.",
		Source: namespaces, Promise: deletesEverything}}
	NamespaceHeld = &Property{ID: "explore.namespace.held", Rule: model.Rule{
		Text:   "An object in a terminating namespace must stay until its finalizers are removed.",
		Source: model.Held.Source, Promise: model.Held.Promise}}
	NamespaceKept = &Property{ID: "explore.namespace.kept", Rule: model.Rule{
		Text:   "An object must stay until it or its namespace is deleted.",
		Source: model.Persists.Source, Promise: model.Persists.Promise}}
	NamespaceClosed = &Property{ID: "explore.namespace.closed", Observed: true, Rule: model.Rule{
		Text:   "A create in a namespace is refused once a response or event has shown that the namespace is terminating.",
		Source: "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go"}}
)

// Properties of an operator.
var (
	OperatorReleased = &Property{ID: "explore.operator.released", Rule: model.Rule{
		Text:   "An operator must remove its finalizer from every terminating object, even if other finalizers hold the object.",
		Source: objectMeta, Promise: removedByComponent}}
	OperatorFinalizers = &Property{ID: "explore.operator.foreign-finalizers", Ordered: true, Rule: model.Rule{
		Text:   "An operator must not remove finalizers of others, and must not add them again after others have removed them.",
		Source: objectMeta, Promise: removedByComponent}}
	OperatorFields = &Property{ID: "explore.operator.foreign-fields", Ordered: true, Rule: model.Rule{
		Text:   "An operator must preserve the labels and annotations that others write.",
		Source: objectMeta, Promise: "They are not queryable and should be preserved when modifying objects."}}
	OperatorChildren = &Property{ID: "explore.operator.children-removed", Rule: model.Rule{
		Text: "The children of an object that is gone must be deleted, and those without owner references before the object, " +
			"unless the object was deleted with propagationPolicy Orphan.",
		Source: objectMeta, Promise: "If ALL objects in the list have been deleted, this object will be garbage collected."}}
	OperatorNamespace = &Property{ID: "explore.operator.namespace", Rule: model.Rule{
		Text:   "A terminating namespace in which an operator reconciles objects must be removed with them.",
		Source: namespaces, Promise: deletesEverything}}
	OperatorServed = &Property{ID: "explore.operator.served", Observed: true, Rule: model.Rule{
		Text:   "An operator adds its finalizer and its children to every object, even if an object of that name existed before.",
		Source: operatorSDK}}
	OperatorRestored = &Property{ID: "explore.operator.restored", Observed: true, Rule: model.Rule{
		Text:   "An operator creates deleted children of an object again when it next reconciles the object.",
		Source: operatorSDK}}
	OperatorStops = &Property{ID: "explore.operator.not-recreated", Ordered: true, Observed: true, Rule: model.Rule{
		Text:   "An operator creates no children for an object, and not the object, after it has removed its finalizer.",
		Source: operatorSDK}}
	OperatorFinalizerFirst = &Property{ID: "explore.operator.finalizer-first", Ordered: true, Observed: true, Rule: model.Rule{
		Text: "An operator adds its finalizer before it creates children.", Source: usingFinalizers}}
)

// OperatorProperties are the properties of a history of an operator, in the order of reports.
var OperatorProperties = []*Property{
	OperatorReleased, OperatorFinalizers, OperatorFields, OperatorChildren, OperatorNamespace, OperatorServed, OperatorRestored, OperatorStops,
	OperatorFinalizerFirst, OwnershipRecreated, AtomicRemoval, SameVersion, StaysGone, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}

// NamespaceProperties are the properties of a history of namespaces, in the order of reports.
var NamespaceProperties = []*Property{
	NamespaceEmptied, NamespaceCompleted, NamespaceHeld, NamespaceKept, NamespaceClosed, AtomicRemoval, SameVersion, StaysGone, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}

// NodeProperties are the properties of a history of pods that a kubelet runs, in the order of reports.
var NodeProperties = []*Property{
	GraceDecreases, GraceExpired, GraceRequested, NodeFullGrace, NodeRemoved, GraceImmediate, AtomicRemoval, SameVersion, StaysGone, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}

// GraceProperties are the properties of a history of pods that no kubelet runs, in the order of reports.
var GraceProperties = []*Property{
	GraceDecreases, GraceExpired, GraceRequested, GraceNeverEarly, GraceImmediate, AtomicRemoval, SameVersion, StaysGone, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}

// OwnershipProperties are the properties of a history whose objects own each other, in the order of reports.
var OwnershipProperties = []*Property{
	OwnershipKept, OwnershipCollected, OwnershipCompleted, OwnershipBlocked, OwnershipOrphaned, OwnershipLatest, OwnershipOverruled, OwnershipCycles,
	OwnershipRecreated, AtomicRemoval, SameVersion, StaysGone, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}

// Properties are the other properties of a history, in the order of reports.
var Properties = []*Property{
	Linearizable, AtomicRemoval, RefusedByVersion, RefusedByUID, Refusals, SameVersion, StaysGone, CollectionRequests, ListSnapshot, ListForward,
	WatchOrder, WatchComplete, WatchOnce, WatchResumed, WatchSameOrder, WatchBookmarks, WatchInitial, WatchDeleted, WatchSelector,
}
