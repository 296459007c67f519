package client

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// runID is the form of a run's id: long and random enough that no name of another user contains one by chance.
var runID = regexp.MustCompile("^dc[bcdfghjklmnpqrstvwxz2456789]{8}$")

// NamedBy reports whether a name contains a run's id between dashes, dots or its ends. For an object outside of the run's namespaces, this
// is the proof that the run created it, or that a controller created it for one of the run's objects. Labels and field managers prove
// nothing, because tools copy them to other objects. An id of another form owns nothing.
func NamedBy(run, name string) bool {
	return runID.MatchString(run) && slices.Contains(partsOf(name), run)
}

// RunNamedIn returns the first id of a run that a name contains; empty for none.
func RunNamedIn(name string) string {
	parts := partsOf(name)
	if at := slices.IndexFunc(parts, runID.MatchString); at >= 0 {
		return parts[at]
	}
	return ""
}

// partsOf splits a name at dashes and dots.
func partsOf(name string) []string {
	return strings.FieldsFunc(name, func(letter rune) bool { return letter == '-' || letter == '.' })
}

// definesOwnGroup reports whether an object of a resource defines an API group below the domain of the harness, which only runs do. Such names
// do not contain the id of the run, because later runs use the groups again: an API server keeps metrics of every group that it has served.
func definesOwnGroup(resource schema.GroupResource, name string) bool {
	return slices.Contains(definitions, resource) && strings.HasSuffix(name, "."+Domain)
}

// definitions are the resources whose objects define API groups.
var definitions = []schema.GroupResource{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, {Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// attachments are the objects whose names the attach/detach controller prescribes. Each is about one node.
var attachments = schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}

// BelongsTo reports whether a run created an object of a collection, by the name of the object or of its namespace. Of the objects that define
// API groups of the harness, the label contains the run that created them. A VolumeAttachment is about a node of the run.
func BelongsTo(run string, collection Collection, object *Object) bool {
	resource := collection.Resource.GroupResource()
	if resource == attachments {
		node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
		return NamedBy(run, node)
	}
	return NamedBy(run, object.GetName()) || NamedBy(run, object.GetNamespace()) ||
		definesOwnGroup(resource, object.GetName()) && object.GetLabels()[RunLabel] == run
}

// Owns reports whether an object of a collection is the run's: BelongsTo, or the run or its user named it.
func (c *Client) Owns(collection Collection, object *Object) bool {
	return c.guard.owns(collection, object)
}
