package history

import (
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// Operated is what a round shows of an operator, besides the objects that it reconciles.
type Operated struct {
	// Finalizers are those that it adds to an object, and Kinds counts the children that it creates for one, by kind.
	Finalizers model.Names    `json:"finalizers,omitempty"`
	Kinds      map[string]int `json:"kinds,omitempty"`
	// Ordered reports that the resourceVersions of objects and of children have one order.
	Ordered bool `json:"ordered,omitempty"`
	// Children are what watches have shown of the children, in order of arrival.
	Children []Child `json:"children,omitempty"`
	// Quiet are the moments at which the operator had time to finish.
	Quiet []Moment `json:"quiet,omitempty"`
}

// Child is a version of an object that an operator has created, and Parent the name of the object that it is for. The name of its event is
// KIND/NAME.
type Child struct {
	Event
	Parent string `json:"parent"`
}

// Moment is a resourceVersion of the objects, with the number of the events of children that were there.
type Moment struct {
	Version  string `json:"version"`
	Children int    `json:"children"`
}

// Operator is the name of the operator in requests, which restart it.
const Operator = "the operator"

// Kind is the kind of the child.
func (c Child) Kind() string {
	kind, _, _ := strings.Cut(c.Name, "/")
	return kind
}

// ParentOf is the name of the object that a child is for; empty if it is none.
func (h *History) ParentOf(child string) string {
	if h.Operated == nil {
		return ""
	}
	at := slices.IndexFunc(h.Operated.Children, func(other Child) bool { return other.Name == child })
	if at < 0 {
		return ""
	}
	return h.Operated.Children[at].Parent
}
