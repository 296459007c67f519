// Package watch holds the behaviours of those who look on: what watches and lists show of objects that are deleted. One file
// a topic.
package watch
