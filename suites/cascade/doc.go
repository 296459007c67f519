// Package cascade holds the behaviors of cascading deletion: background, foreground and orphan deletion of the dependents of an
// object, and the owner references and workloads that they rest on.
package cascade
