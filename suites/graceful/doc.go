// Package graceful holds the behaviors of graceful deletion. Most rest on one rule: a grace period can only be shortened. Files
// that begin with node_ need a real node. The pods of the others are bound to a node that does not exist, or are unscheduled.
package graceful
