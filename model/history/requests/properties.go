// Package requests checks that one order of the requests on each object explains their responses, and of what other clients wrote.
package requests

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const store = "k8s.io/apiserver/pkg/registry/generic/registry/store.go"

// The properties of requests.
var (
	Linearizable = &history.Property{ID: "explore.object.one-order", Rule: model.Rule{
		Text: "One order of all requests on an object must explain every response.", Source: model.Current.Source, Promise: model.Current.Promise}}
	Refusals = &history.Property{ID: "explore.object.refusals", Observed: true, Rule: model.Rule{
		Text: "A request is refused only for a reason that the object shows.", Source: store}}
	RefusedByVersion = &history.Property{ID: "explore.object.refused-by-version", Observed: true, Upstream: true, Rule: model.Rule{
		Text: "A delete that requires a resourceVersion is refused with 409 only while an object with another one exists.", Source: store}}
	RefusedByUID = &history.Property{ID: "explore.object.refused-by-uid", Rule: model.Rule{
		Text:   "A delete that requires a uid must be refused with 409 only while an object with another uid exists, and otherwise with 404.",
		Source: "api-conventions", Promise: "Indicates that the requested resource does not exist."}}
	CollectionRequests = &history.Property{ID: "explore.collection.decomposed", Observed: true, Rule: model.Rule{
		Text:   "A deletecollection deletes every object that its selector matched at one moment of the request, and no other.",
		Source: store}}
)
