// Package graceful holds the behaviours of graceful deletion, and the rule that most of them rest on: grace only ever
// decreases. Files that begin with api_ need an API server alone: their pods are bound to a node that does not exist,
// or to none.
package graceful
