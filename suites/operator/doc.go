// Package operator holds the behaviours of a controller that takes care of objects: what it does about their finalizers and
// about what it makes for them. They are judged where a run is told of a controller. One file a topic.
package operator
