package model

import (
	"cmp"
	"fmt"
)

// Object is what the model knows of an object. Two of them are equal if they are the same version of the same object.
type Object struct {
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Terminating reports that the object has a deletionTimestamp.
	Terminating bool `json:"terminating,omitempty"`
	// Finalizers are what metadata.finalizers names, and Owners the metadata.ownerReferences, each as Owner.String.
	Finalizers Names `json:"finalizers,omitempty"`
	Owners     Names `json:"owners,omitempty"`
	// Label and Value are the values of one label and one annotation, and Status is that of the status; empty where there is none.
	Label  string `json:"label,omitempty"`
	Value  string `json:"value,omitempty"`
	Status string `json:"status,omitempty"`
	// Stray reports that the object lacks the labels by which the run selects its objects, as another client has created or relabeled it.
	Stray bool `json:"stray,omitempty"`
}

// Content is an object without what the server chooses.
func (o Object) Content() Object {
	o.UID, o.ResourceVersion = "", ""
	return o
}

// Finalizers of the garbage collector, which it adds to an object by a propagation policy and removes later.
const (
	Foreground = "foregroundDeletion"
	Orphan     = "orphan"
)

// State is what the model knows of a name in a collection: the object that has it, and what requests have decided and not yet carried out.
type State struct {
	Exists bool
	// Object is the object that has the name. Its UID and ResourceVersion are empty where no response has shown them.
	Object
	// Former is the uid of the object that had the name before; unknownUID where no response has shown it.
	Former string
	// Marks are the decisions of operations that have several steps; see Operation.
	Marks Names
}

// String describes the state in failures.
func (s State) String() string {
	if !s.Exists {
		return "no object"
	}
	return s.Object.String()
}

// String describes the object in failures.
func (o Object) String() string {
	text := "uid " + orUnknown(o.UID) + ", resourceVersion " + orUnknown(o.ResourceVersion)
	if o.Terminating {
		text += ", terminating"
	}
	for _, field := range []struct{ name, value string }{
		{"finalizers", string(o.Finalizers)}, {"owners", string(o.Owners)}, {"label", o.Label}, {"value", o.Value}, {"status", o.Status},
	} {
		if field.value != "" {
			text += fmt.Sprintf(", %s %s", field.name, field.value)
		}
	}
	if o.Stray {
		text += ", without the labels of the run"
	}
	return text
}

func orUnknown(value string) string {
	if value == "" {
		return "unknown"
	}
	return value
}

// unknownUID is the uid of an object that is gone and that no response has shown.
const unknownUID = "unknown"

// removed is the state after the object is gone.
func (s State) removed() State { return State{Former: cmp.Or(s.UID, unknownUID), Marks: s.Marks} }

// released is the state after the garbage collector has removed its finalizers from a terminating object, which it may do at any time.
//
// Its writes are no foreign ones, because those are only known where a watch has shown every version. What the collector does to one object is known
// without that: requests are checked, too, while a watch has lost its position, and on servers without watches.
func (s State) released() (State, bool) {
	kept := s.Finalizers.Without(Foreground, Orphan)
	if !s.Terminating || kept == s.Finalizers {
		return s, false
	}
	if kept == "" {
		return s.removed(), true
	}
	s.Finalizers, s.ResourceVersion = kept, ""
	return s, true
}
