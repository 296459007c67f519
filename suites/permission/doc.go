// Package permission holds the behaviours of who may delete: which permission each way of deleting needs, and which do not do
// instead of it. They are judged by users with Roles of the spec's own. One file a topic.
package permission
