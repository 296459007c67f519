// Package operator holds the behaviors that are promised of a controller: how it handles its finalizers and the objects that it
// creates. They run only with --controller.
package operator
