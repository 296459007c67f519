// Package reads checks what lists and watches show.
package reads

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	apiConcepts   = "reference/using-api/api-concepts"
	nothingMissed = "The overall **watch** mechanism allows a client to fetch the current state and then subscribe to subsequent " +
		"changes, without missing any events."
	allChangesAfter = "The watch events are for all changes after the provided resource version."
	orderable       = "Resource version strings are orderable as monotonically increasing integers within the same resource type " +
		"for all types served by kube-apiserver."
)

// The properties of lists and watches.
var (
	ListSnapshot = &history.Property{ID: "explore.list.snapshot", Ordered: true, Rule: model.Rule{
		Text: "A list must contain the state of each object at the list's resourceVersion, on all its pages.", Source: apiConcepts,
		Promise: "the `resourceVersion` of the collection remains constant across each request, indicating the server is showing you a " +
			"consistent snapshot of the pods."}}
	ListForward = &history.Property{ID: "explore.list.never-older", Ordered: true, Rule: model.Rule{
		Text:   "A get or list must not be older than its resourceVersion parameter, or without one than any earlier response.",
		Source: apiConcepts, Promise: "Return data at least as new as the provided `resourceVersion`."}}
	WatchOrder = &history.Property{ID: "explore.watch.order", Ordered: true, Rule: model.Rule{
		Text: "A watch must deliver events in the order of their resourceVersions.", Source: apiConcepts, Promise: orderable}}
	WatchComplete = &history.Property{ID: "explore.watch.complete", Ordered: true, Rule: model.Rule{
		Text: "A watch must deliver every change after its resourceVersion.", Source: apiConcepts, Promise: nothingMissed}}
	WatchOnce = &history.Property{ID: "explore.watch.no-duplicates", Rule: model.Rule{
		Text: "A watch must deliver every change once.", Source: apiConcepts, Promise: allChangesAfter}}
	WatchResumed = &history.Property{ID: "explore.watch.resumed", Ordered: true, Rule: model.Rule{
		Text:   "A resumed watch must deliver exactly the changes after the resourceVersion that it resumes from.",
		Source: apiConcepts, Promise: allChangesAfter}}
	WatchSameOrder = &history.Property{ID: "explore.watch.same-order", Rule: model.Rule{
		Text: "Concurrent watches must deliver changes in the same order.", Source: "conformance: watch-consistency",
		Promise: "Ensure that concurrent watches are consistent with each other"}}
	WatchBookmarks = &history.Property{ID: "explore.watch.bookmarks", Ordered: true, Rule: model.Rule{
		Text: "A bookmark must follow every change up to its resourceVersion and precede every later one.", Source: apiConcepts,
		Promise: "mark that all changes up to a given `resourceVersion` the client is requesting have already been sent"}}
	WatchInitial = &history.Property{ID: "explore.watch.initial-events", Ordered: true, Rule: model.Rule{
		Text: "Initial events must build the state of all objects at the bookmark that ends them.", Source: apiConcepts,
		Promise: "the API server starts the watch stream with synthetic init events ... to build the whole state of all existing objects"}}
	WatchDeleted = &history.Property{ID: "explore.watch.final-state", Ordered: true, Rule: model.Rule{
		Text: "A DELETED event must show the last state of the object.", Source: "k8s.io/apimachinery/pkg/watch/watch.go",
		Promise: "If Type is Deleted: the state of the object immediately before deletion."}}
	WatchSelector = &history.Property{ID: "explore.watch.selector", Ordered: true, Rule: model.Rule{
		Text:    "A watch with a selector must deliver ADDED for an object that begins to match, and DELETED for one that stops matching.",
		Source:  "conformance: watch-configmaps-label-changed",
		Promise: "Ensure that a watched object stops meeting the requirements of a watch's selector, the watch will observe a delete"}}
)
