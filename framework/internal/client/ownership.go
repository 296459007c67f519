package client

import (
	"regexp"
	"slices"
	"strings"
)

// runID is the form of a run's id: long and random enough that no name of another user contains one by chance.
var runID = regexp.MustCompile("^dc[bcdfghjklmnpqrstvwxz2456789]{8}$")

// NamedBy reports whether a name contains a run's id between dashes, dots or its ends. For an object outside of the run's namespaces, this
// is the proof that the run created it, or that a controller created it for one of the run's objects. Labels and field managers prove
// nothing, because tools copy them to other objects. An id of another form owns nothing.
func NamedBy(run, name string) bool {
	parts := strings.FieldsFunc(name, func(letter rune) bool { return letter == '-' || letter == '.' })
	return runID.MatchString(run) && slices.Contains(parts, run)
}
