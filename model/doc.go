// Package model contains the promises of Kubernetes about one object's life, in a form that random histories are checked against: the state
// of an object, the operations on it, and one function that returns the state that follows, or the rule that a response breaks.
//
// It knows no client, no clock and no storage. What a server chooses (uid, resourceVersion) is taken from its responses.
package model
