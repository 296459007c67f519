// Package graceful holds the behaviors of graceful deletion. Most follow from one rule: a grace period can only be shortened. Files whose
// names start with node_ require a real node. The pods of the others are bound to a node that does not exist, or are unscheduled.
package graceful
