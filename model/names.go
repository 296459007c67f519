package model

import (
	"slices"
	"strings"
)

// Names is a set of names, in a form that can be compared: sorted, and joined by commas.
type Names string

// NamesOf is the set of some names.
func NamesOf(names ...string) Names {
	sorted := slices.Sorted(slices.Values(names))
	return Names(strings.Join(slices.Compact(sorted), ","))
}

// List returns the names, sorted.
func (n Names) List() []string {
	if n == "" {
		return nil
	}
	return strings.Split(string(n), ",")
}

// Has reports whether a name is in the set.
func (n Names) Has(name string) bool { return slices.Contains(n.List(), name) }

// With returns the set with more names.
func (n Names) With(names ...string) Names { return NamesOf(append(n.List(), names...)...) }

// Without returns the set without some names.
func (n Names) Without(names ...string) Names {
	return NamesOf(slices.DeleteFunc(n.List(), func(name string) bool { return slices.Contains(names, name) })...)
}

// Exceeds reports whether a set has names that another lacks.
func (n Names) Exceeds(other Names) bool { return n.Without(other.List()...) != "" }
