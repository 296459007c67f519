// Package removals checks that nothing shows an object again that was removed.
package removals

import (
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

// StaysGone is the property of removals.
var StaysGone = &history.Property{ID: "explore.object.stays-gone", Rule: model.Rule{
	Text:   "An object that was removed must not be seen again, in the same round or a later one, unless what shows it may be older than the removal.",
	Source: model.Current.Source, Promise: model.Current.Promise}}
