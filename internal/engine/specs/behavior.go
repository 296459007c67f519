// Package specs reads behaviors and evidence from Ginkgo's reports. Labels contain the behavior, and a report entry the evidence.
package specs

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const (
	slowLabel        = "slow"
	disruptiveLabel  = "disruptive"
	sharedKindLabel  = "shared-kind"
	anyResourceLabel = "any-resource"
	nothingLabel     = "creates-nothing"
	sourceLabel      = "source:"
	promiseLabel     = "promise:"
	featureLabel     = "features:"
	disturbsLabel    = "disturbs:"
	stopsLabel       = "stops:"
	sinceConstraint  = ">="
	patchOfAnyMinor  = ".0"
	behaviorIDFormat = `^[a-z]+(\.[a-zA-Z0-9-]+)+$`
)

var behaviorID = regexp.MustCompile(behaviorIDFormat)

// Identify labels a spec with a behavior's id and level. It panics when the id cannot be used in a label filter.
func Identify(id string, level v1alpha1.Level) any {
	if !behaviorID.MatchString(id) {
		panic(fmt.Sprintf("behavior id %q must look like suite.topic.name (%s)", id, behaviorIDFormat))
	}
	return ginkgo.Label(id, string(level))
}

// Features labels a spec with the features that it requires.
func Features(feature v1alpha1.Feature) any { return ginkgo.Label(featureLabel + string(feature)) }

// Since is the first minor version with which a spec can run; see Ginkgo's --sem-ver-filter.
func Since(minor string) any {
	return ginkgo.SemVerConstraint(sinceConstraint + minor + patchOfAnyMinor)
}

// Slow labels a spec that waits about a minute for the cluster's clock, or creates hundreds of objects.
func Slow() any { return ginkgo.Label(slowLabel) }

// Disruptive labels a spec that changes more of a cluster than its own objects.
func Disruptive() any { return ginkgo.Label(disruptiveLabel) }

// Disturbs labels a Serial spec that may run in parallel with others, except those with all of these features.
func Disturbs(features ...v1alpha1.Feature) any {
	label := disturbsLabel
	for _, feature := range features {
		label += " " + string(feature)
	}
	return ginkgo.Label(label)
}

// Stops labels a Serial spec that stops a component. Others that stop the same one may run in parallel.
func Stops(component string) any { return ginkgo.Label(stopsLabel + component) }

// Stopped returns the component that a spec stops, if others may stop it at the same time.
func Stopped(spec types.SpecReport) string {
	for _, label := range spec.LeafNodeLabels {
		if component, ok := strings.CutPrefix(label, stopsLabel); ok {
			return component
		}
	}
	return ""
}

// Disturbed returns the sets of features that a Serial spec disturbs; none if it may not run in parallel with any spec.
func Disturbed(spec types.SpecReport) [][]v1alpha1.Feature {
	var disturbed [][]v1alpha1.Feature
	for _, label := range spec.LeafNodeLabels {
		if features, ok := strings.CutPrefix(label, disturbsLabel); ok {
			var all []v1alpha1.Feature
			for _, feature := range strings.Fields(features) {
				all = append(all, v1alpha1.Feature(feature))
			}
			disturbed = append(disturbed, all)
		}
	}
	return disturbed
}

// SharedKind labels a spec that uses a custom kind which the run defines when it starts.
func SharedKind() any { return ginkgo.Label(sharedKindLabel) }

// UsesSharedKind reports whether a spec has the label of SharedKind.
func UsesSharedKind(spec types.SpecReport) bool {
	return slices.Contains(spec.LeafNodeLabels, sharedKindLabel)
}

// AnyResource labels a spec whose behavior is promised for every kind.
func AnyResource() any { return ginkgo.Label(anyResourceLabel) }

// CreatesNothing labels a spec that only sends reads and dry-runs.
func CreatesNothing() any { return ginkgo.Label(nothingLabel) }

// IsCreatingNothing reports whether a spec has the label of CreatesNothing.
func IsCreatingNothing(spec types.SpecReport) bool {
	return slices.Contains(spec.LeafNodeLabels, nothingLabel)
}

// Source labels a spec with the location of its promise. Labels may not contain slashes and commas, so the text is escaped as in a query.
func Source(text string) any { return ginkgo.Label(sourceLabel + url.QueryEscape(text)) }

// Promise labels a spec with the sentence that makes its promise, escaped as in Source.
func Promise(text string) any { return ginkgo.Label(promiseLabel + url.QueryEscape(text)) }

// BehaviorOf reads a behavior from Ginkgo's report of a spec. It is false for specs that are not behaviors.
func BehaviorOf(spec types.SpecReport) (v1alpha1.Behavior, bool) {
	behavior := v1alpha1.Behavior{
		Statement: spec.LeafNodeText,
		Features:  []v1alpha1.Feature{},
		File:      RepositoryPath(spec.LeafNodeLocation.FileName),
		Line:      spec.LeafNodeLocation.LineNumber,
	}
	for _, label := range spec.LeafNodeLabels {
		feature, ok := strings.CutPrefix(label, featureLabel)
		source, isSource := strings.CutPrefix(label, sourceLabel)
		promise, isPromise := strings.CutPrefix(label, promiseLabel)
		switch {
		case isPromise:
			behavior.Promise, _ = url.QueryUnescape(strings.TrimSpace(promise)) // escaped by Promise
		case isSource:
			behavior.Source, _ = url.QueryUnescape(strings.TrimSpace(source)) // escaped by Source
		case label == disruptiveLabel:
			behavior.Disruptive = true
		case ok:
			behavior.Features = append(behavior.Features, v1alpha1.Feature(strings.TrimSpace(feature)))
		case label == slowLabel:
			behavior.Slow = true
		case label == anyResourceLabel:
			behavior.AnyResource = true
		case slices.Contains(v1alpha1.Levels, v1alpha1.Level(label)):
			behavior.Level = v1alpha1.Level(label)
		case behaviorID.MatchString(label):
			behavior.ID = label
		}
	}
	for _, constraint := range spec.LeafNodeSemVerConstraints {
		behavior.Since = strings.TrimSuffix(strings.TrimPrefix(constraint, sinceConstraint), patchOfAnyMinor)
	}
	slices.SortFunc(behavior.Features, func(a, b v1alpha1.Feature) int {
		return slices.Index(v1alpha1.Features, a) - slices.Index(v1alpha1.Features, b)
	})
	return behavior, behavior.ID != ""
}

// RepositoryPath shortens a path of the machine that compiled the binary to a path in the repository, for files of specs and the framework.
func RepositoryPath(file string) string {
	for _, dir := range []string{"/suites/", "/framework/", "/fixtures/"} {
		if i := strings.LastIndex(file, dir); i >= 0 {
			return file[i+1:]
		}
	}
	return file
}
