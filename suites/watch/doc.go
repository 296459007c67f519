// Package watch holds the behaviors of watches and lists: what clients see of objects that are deleted.
package watch
