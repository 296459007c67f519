package model

import "fmt"

// Rule is a promise of Kubernetes.
type Rule struct {
	// Text is the rule in one sentence.
	Text string
	// Source is where the promise is made, in the form of a behavior's Source, and Promise quotes it. Promise is empty where only the
	// implementation shows the rule.
	Source, Promise string
}

const (
	apiConcepts    = "reference/using-api/api-concepts"
	apiConventions = "api-conventions"
	finalizers     = "concepts/overview/working-with-objects/finalizers"
	names          = "concepts/overview/working-with-objects/names"
	objectMeta     = "reference/kubernetes-api/definitions/object-meta-v1-meta"
	deleteOptions  = "reference/kubernetes-api/definitions/delete-options-v1-meta"
	store          = "k8s.io/apiserver/pkg/registry/generic/registry/store.go"
)

// Rules of one object's life.
var (
	OneOfAName = Rule{"A create must be refused with 409 while an object has the name, terminating or not.", names,
		"Only one object of a given kind can have a given name at a time."}
	NewUID = Rule{"An object must have another uid than the object that had its name before.", names,
		"Every object created over the whole lifetime of a Kubernetes cluster has a distinct UID."}
	MustExist = Rule{"A request about an object that does not exist must be refused with 404.", apiConventions,
		"Indicates that the requested resource does not exist."}
	Created = Rule{"A request must be answered with 201 if it created the object, and with 200 if the object existed.", apiConventions,
		"Indicates that the request to create kind completed successfully."}
	Stale = Rule{"A write with a resourceVersion that is not the current one must be refused with 409.", apiConcepts,
		"In the event that the resource has changed (the `resourceVersion` the client provided is stale), " +
			"the API server returns a `409 Conflict` error response."}
	Preconditions = Rule{"A delete whose preconditions are not met must be refused with 409.", deleteOptions,
		"Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status will be returned."}
	OnlyRemoved = Rule{"A write that adds a finalizer to a terminating object must be refused with 422.", objectMeta,
		"If the deletionTimestamp of the object is non-nil, entries in this list can only be removed."}
	StaysTerminating = Rule{"An object that is terminating must stay so until it is removed.", objectMeta,
		"Once the deletionTimestamp is set, this value may not be unset or be set further into the future"}
	Held = Rule{"An object must stay until it has no finalizers.", finalizers,
		"Prevents the object from being removed until all items are removed from its `metadata.finalizers` field"}
	Persists = Rule{"An object must exist until a request deletes it.", "concepts/overview/working-with-objects",
		"once you create the object, the Kubernetes system will constantly work to ensure that the object exists"}
	Unconditional = Rule{"An update without resourceVersion may be refused with 422.", store, ""}
	NoReason      = Rule{"A request that nothing forbids must succeed.", store, ""}
	Current       = Rule{"A response must show the object as the operations before it left it, with its own change.", apiConcepts,
		"Return data at the most recent resource version. The returned data must be consistent"}
	NewVersion = Rule{"A write that changes an object must change its resourceVersion.", apiConcepts,
		"every Kubernetes object has a `resourceVersion` field representing the version of that resource as stored in the underlying " +
			"persistence layer."}
	Selected = Rule{"A list or deletecollection must contain exactly the objects that its selector matches at that moment.", apiConcepts,
		"return collection of all instances of the resource type in NAMESPACE"}
)

// Violation is the error of a response that breaks a rule.
type Violation struct {
	Rule Rule
	// Detail is what the response shows, and what was expected.
	Detail string
}

func (v *Violation) Error() string { return v.Detail + ": " + v.Rule.Text }

func violates(rule Rule, format string, values ...any) error {
	return &Violation{rule, fmt.Sprintf(format, values...)}
}
