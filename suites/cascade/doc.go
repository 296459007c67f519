// Package cascade holds the behaviours of cascading deletion: what becomes of the dependents of an object that is
// deleted in the background, in the foreground, or with its dependents orphaned. One file a topic.
package cascade
