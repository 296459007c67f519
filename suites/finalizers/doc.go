// Package finalizers holds the behaviours of finalizers: what holds an object back, what it can still do meanwhile, and
// what lets it go.
package finalizers
