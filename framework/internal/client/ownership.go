package client

import (
	"regexp"
	"slices"
	"strings"
)

// runID is the form of a run's id; see environment.NewRunID.
var runID = regexp.MustCompile(`^dc[bcdfghjklmnpqrstvwxz2456789]{8}$`)

// NamedBy reports whether a name contains a run's id as a whole part between hyphens and dots. This is the proof that the run created the
// object, or that a controller created it for an object of the run: other users and tools copy labels, annotations and field managers, but
// they cannot rename an object. Nothing is named by an id that no run can have.
func NamedBy(run, name string) bool {
	return runID.MatchString(run) && slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' }), run)
}

// namedByGroup are the kinds whose names end in the API group that they are about.
var namedByGroup = []string{"CustomResourceDefinition", "APIService"}

// BelongsTo reports whether a run created an object, by its name. The kinds that the runs define are named after an API group of the harness,
// which later runs use again; there the label tells which run it was.
func BelongsTo(run string, object *Object) bool {
	if NamedBy(run, object.GetName()) {
		return true
	}
	return runID.MatchString(run) && object.GetLabels()[RunLabel] == run &&
		slices.Contains(namedByGroup, object.GetKind()) && strings.HasSuffix(object.GetName(), "."+Domain)
}

// Owns reports whether the run created an object of a collection: BelongsTo, or one that this process created for the run.
func (c *Client) Owns(collection Collection, object *Object) bool {
	return BelongsTo(c.guard.run, object) || c.guard.knows(collection.path()+"/"+object.GetName())
}
