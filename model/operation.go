package model

// Verb is what an operation does.
type Verb string

const (
	// Get reads the object.
	Get Verb = "get"
	// Create, Update, Patch and Apply write the object, and UpdateStatus its status.
	Create       Verb = "create"
	Update       Verb = "update"
	Patch        Verb = "patch"
	Apply        Verb = "apply"
	UpdateStatus Verb = "update status"
	// Delete deletes the object, and Evict does so unless a budget forbids that.
	Delete Verb = "delete"
	Evict  Verb = "evict"
	// Select is the object's part of a list, and the first step of its part of a deletecollection.
	Select Verb = "select"
	// Remove is the last step of an operation that decided to remove the object.
	Remove Verb = "remove"
	// Foreign is a write that another client may have done. Operation.ResourceVersion is the version that it replaces, and empty for a new object.
	Foreign Verb = "foreign write"
	// Restart stops the operator of the objects and starts it again.
	Restart Verb = "restart"
)

// Propagation policies of a delete.
const (
	PolicyBackground = "Background"
	PolicyForeground = "Foreground"
	PolicyOrphan     = "Orphan"
)

// Operation is one request about one object, or one step of it.
//
// An operation of several steps leaves a mark of what one step decided, for the next, which may happen at a later moment.
type Operation struct {
	Verb Verb `json:"verb"`
	// UID and ResourceVersion are what the object must have; empty for any.
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Change is what a write changes.
	Change Change `json:"change,omitzero"`
	// Policy is the propagation policy of a delete; empty for the default.
	Policy string `json:"policy,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Grace is the gracePeriodSeconds of a delete; nil for none.
	Grace *int64 `json:"grace,omitempty"`
	// Label is the value that a label selector requires; empty for any.
	Label string `json:"label,omitempty"`
	// Marks and Awaits name the mark that this step leaves, and the one of the step before it.
	Marks  string `json:"marks,omitempty"`
	Awaits string `json:"awaits,omitempty"`
	// Finds reports that the last step only succeeds if it finds an object. That of a delete does: where another request was first, the response is
	// 404. A deletecollection, and an update that removes the last finalizer, succeed then, too.
	Finds bool `json:"finds,omitempty"`
	// Careless reports that another client may have removed what only the run writes.
	Careless bool `json:"careless,omitempty"`
}

// Change is what a write changes. Fields that are nil stay as they are.
type Change struct {
	Label      *string `json:"label,omitempty"`
	Value      *string `json:"value,omitempty"`
	Status     *string `json:"status,omitempty"`
	Finalizers *Names  `json:"finalizers,omitempty"`
	Owners     *Names  `json:"owners,omitempty"`
}

// of returns an object with the change.
func (c Change) of(object Object) Object {
	set(&object.Label, c.Label)
	set(&object.Value, c.Value)
	set(&object.Status, c.Status)
	set(&object.Finalizers, c.Finalizers)
	set(&object.Owners, c.Owners)
	return object
}

// Of returns an object after a write or delete that nothing forbids.
func (o Operation) Of(object Object) Object {
	if o.Verb != Delete {
		return o.Change.of(object)
	}
	object.Terminating, object.Finalizers = true, deletionFinalizers(object.Finalizers, o.Policy)
	return object
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Outcome is what the response to an operation shows.
type Outcome struct {
	// Code is the HTTP status code; 0 if the response was lost, so that the operation may take effect at any later time, or never.
	Code int `json:"code"`
	// Object is the object that the response shows; nil if it shows none.
	Object *Object `json:"object,omitempty"`
}

// Lost reports whether the response was lost.
func (o Outcome) Lost() bool { return o.Code == 0 }

// Succeeded reports whether the server carried out the operation.
func (o Outcome) Succeeded() bool { return o.Code >= 200 && o.Code < 300 }
