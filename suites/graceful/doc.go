// Package graceful holds the behaviours of graceful deletion, and the rule that most of them rest on: grace only ever
// decreases. Files that begin with node_ need a real node; the pods of the others are bound to a node that does not
// exist, or to none.
package graceful
