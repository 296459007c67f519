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

// Broken returns the violation of the property by an object.
func (p *Property) Broken(name, format string, values ...any) Violation {
	return Violation{Property: p, Rule: p.Rule, Name: name, Request: -1, Stream: -1, Message: fmt.Sprintf(format, values...)}
}

// Properties of every history.
var (
	AtomicRemoval = &Property{ID: "explore.object.atomic-removal", Observed: true, Upstream: true, Rule: model.Rule{
		Text:   "A request that removes an object decides and removes at one moment.",
		Source: "k8s.io/apiserver/pkg/registry/generic/registry/store.go"}}
	SameVersion = &Property{ID: "explore.object.same-version", Rule: model.Rule{
		Text:   "Every response and event with the same resourceVersion of an object must show the same object.",
		Source: model.NewVersion.Source, Promise: model.NewVersion.Promise}}
)
