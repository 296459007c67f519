// Package admission holds the behaviours of who is asked before something is deleted: what admission webhooks and policies are
// told of a delete, by whomever, and what becomes of one that they refuse. One file a topic.
package admission
