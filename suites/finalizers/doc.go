// Package finalizers holds the behaviors of finalizers: terminating objects and namespaces, what can still be changed on them, and
// their removal.
package finalizers
