// Package namespaces checks that namespaces are emptied and removed.
package namespaces

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	namespaces        = "tasks/administer-cluster/namespaces"
	deletesEverything = "This deletes _everything_ under the namespace!"
)

// Properties of namespaces.
var (
	Emptied = &history.Property{ID: "explore.namespace.emptied", Rule: model.Rule{
		Text:   "No object of a namespace may exist after the namespace is gone.",
		Source: namespaces, Promise: deletesEverything}}
	Completed = &history.Property{ID: "explore.namespace.completed", Rule: model.Rule{
		Text:   "A terminating namespace must be removed when finalizers hold nothing in it.",
		Source: namespaces, Promise: deletesEverything}}
	Held = &history.Property{ID: "explore.namespace.held", Rule: model.Rule{
		Text:   "An object in a terminating namespace must stay until its finalizers are removed.",
		Source: model.Held.Source, Promise: model.Held.Promise}}
	Kept = &history.Property{ID: "explore.namespace.kept", Rule: model.Rule{
		Text:   "An object must stay until it or its namespace is deleted.",
		Source: model.Persists.Source, Promise: model.Persists.Promise}}
	Closed = &history.Property{ID: "explore.namespace.closed", Observed: true, Rule: model.Rule{
		Text:   "A create in a namespace is refused once a response or event has shown that the namespace is terminating.",
		Source: "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go"}}
)
