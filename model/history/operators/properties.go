// Package operators checks what an operator does with the objects that it reconciles.
package operators

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/namespaces"
)

const (
	objectMeta         = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	usingFinalizers    = "book.kubebuilder.io/reference/using-finalizers"
	operatorSDK        = "sdk.operatorframework.io/docs/building-operators/golang/advanced-topics: handle cleanup on deletion"
	removedByComponent = "Each entry is an identifier for the responsible component that will remove the entry from the list."
)

// Properties of an operator.
var (
	Released = &history.Property{ID: "explore.operator.released", Rule: model.Rule{
		Text:   "An operator must remove its finalizer from every terminating object, even if other finalizers hold the object.",
		Source: objectMeta, Promise: removedByComponent}}
	Finalizers = &history.Property{ID: "explore.operator.foreign-finalizers", Ordered: true, Rule: model.Rule{
		Text:   "An operator must not remove finalizers of others, and must not add them again after others have removed them.",
		Source: objectMeta, Promise: removedByComponent}}
	Fields = &history.Property{ID: "explore.operator.foreign-fields", Ordered: true, Rule: model.Rule{
		Text:   "An operator must preserve the labels and annotations that others write.",
		Source: objectMeta, Promise: "They are not queryable and should be preserved when modifying objects."}}
	Children = &history.Property{ID: "explore.operator.children-removed", Rule: model.Rule{
		Text: "The children of an object that is gone must be deleted, and those without owner references before the object, " +
			"unless the object was deleted with propagationPolicy Orphan.",
		Source: objectMeta, Promise: "If ALL objects in the list have been deleted, this object will be garbage collected."}}
	Namespace = &history.Property{ID: "explore.operator.namespace", Rule: model.Rule{
		Text:   "A terminating namespace in which an operator reconciles objects must be removed with them.",
		Source: namespaces.Completed.Rule.Source, Promise: namespaces.Completed.Rule.Promise}}
	Served = &history.Property{ID: "explore.operator.served", Observed: true, Rule: model.Rule{
		Text:   "An operator adds its finalizer and its children to every object, even if an object of that name existed before.",
		Source: operatorSDK}}
	Restored = &history.Property{ID: "explore.operator.restored", Observed: true, Rule: model.Rule{
		Text:   "An operator creates deleted children of an object again when it next reconciles the object.",
		Source: operatorSDK}}
	Stops = &history.Property{ID: "explore.operator.not-recreated", Ordered: true, Observed: true, Rule: model.Rule{
		Text:   "An operator creates no children for an object, and not the object, after it has removed its finalizer.",
		Source: operatorSDK}}
	FinalizerFirst = &history.Property{ID: "explore.operator.finalizer-first", Ordered: true, Observed: true, Rule: model.Rule{
		Text: "An operator adds its finalizer before it creates children.", Source: usingFinalizers}}
)
