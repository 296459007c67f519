// Package specs reads back from Ginkgo's reports what specs say of themselves: which behavior of the catalogue they
// test, and with what evidence. Ginkgo's labels carry the first, a report entry the second.
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
	needLabel        = "needs:"
	disturbsLabel    = "disturbs:"
	sinceConstraint  = ">="
	patchOfAnyMinor  = ".0"
	behaviorIDFormat = `^[a-z]+(\.[a-zA-Z0-9-]+)+$`
)

var behaviorID = regexp.MustCompile(behaviorIDFormat)

// Identify labels a spec with a behavior's id and level. It panics when the id could not be named in a label filter.
func Identify(id string, level v1alpha1.Level) any {
	if !behaviorID.MatchString(id) {
		panic(fmt.Sprintf("behavior id %q must look like suite.topic.name (%s)", id, behaviorIDFormat))
	}
	return ginkgo.Label(id, string(level))
}

// Features labels a spec with the features that it requires.
func Features(need v1alpha1.Feature) any { return ginkgo.Label(needLabel + string(need)) }

// Since says from which minor version on a spec can be tested; see Ginkgo's --sem-ver-filter.
func Since(minor string) any {
	return ginkgo.SemVerConstraint(sinceConstraint + minor + patchOfAnyMinor)
}

// Slow labels a spec that waits a minute or so for the cluster's own clock.
func Slow() any { return ginkgo.Label(slowLabel) }

// Disruptive labels a spec that changes more of a cluster than what it makes.
func Disruptive() any { return ginkgo.Label(disruptiveLabel) }

// Disturbs labels a Serial spec that others may run beside, but for those that have all of these needs.
func Disturbs(needs ...v1alpha1.Feature) any {
	label := disturbsLabel
	for _, need := range needs {
		label += " " + string(need)
	}
	return ginkgo.Label(label)
}

// Disturbed are the needs of which a Serial spec disturbs those that have all of one element; none if it may run beside no other.
func Disturbed(spec types.SpecReport) [][]v1alpha1.Feature {
	var disturbed [][]v1alpha1.Feature
	for _, label := range spec.LeafNodeLabels {
		if needs, is := strings.CutPrefix(label, disturbsLabel); is {
			var all []v1alpha1.Feature
			for _, need := range strings.Fields(needs) {
				all = append(all, v1alpha1.Feature(need))
			}
			disturbed = append(disturbed, all)
		}
	}
	return disturbed
}

// SharedKind labels a spec that uses a custom kind which the run defines at its beginning.
func SharedKind() any { return ginkgo.Label(sharedKindLabel) }

// UsesSharedKind says whether a spec uses a custom kind which the run defines at its beginning.
func UsesSharedKind(spec types.SpecReport) bool {
	return slices.Contains(spec.LeafNodeLabels, sharedKindLabel)
}

// AnyResource labels a spec that tests what every kind promises.
func AnyResource() any { return ginkgo.Label(anyResourceLabel) }

// IsOfAnyResource says whether a spec tests what every kind promises.
func IsOfAnyResource(spec types.SpecReport) bool {
	return slices.Contains(spec.LeafNodeLabels, anyResourceLabel)
}

// CreatesNothing labels a spec that only reads and asks what would happen.
func CreatesNothing() any { return ginkgo.Label(nothingLabel) }

// IsCreatingNothing says whether a spec only reads and asks what would happen.
func IsCreatingNothing(spec types.SpecReport) bool {
	return slices.Contains(spec.LeafNodeLabels, nothingLabel)
}

// Source labels a spec with where its promise is made. Labels take no slashes, commas and the like, so the text is escaped
// as in a query.
func Source(text string) any { return ginkgo.Label(sourceLabel + url.QueryEscape(text)) }

// Promise labels a spec with the sentence that makes its promise, escaped as a source is.
func Promise(text string) any { return ginkgo.Label(promiseLabel + url.QueryEscape(text)) }

// BehaviorOf reads the catalogue row back from Ginkgo's report of a spec. It is false for specs that are no behavior.
func BehaviorOf(spec types.SpecReport) (v1alpha1.Behavior, bool) {
	behavior := v1alpha1.Behavior{
		Statement: spec.LeafNodeText,
		Features:  []v1alpha1.Feature{},
		File:      RepositoryPath(spec.LeafNodeLocation.FileName),
		Line:      spec.LeafNodeLocation.LineNumber,
	}
	for _, label := range spec.LeafNodeLabels {
		need, isNeed := strings.CutPrefix(label, needLabel)
		source, isSource := strings.CutPrefix(label, sourceLabel)
		promise, isPromise := strings.CutPrefix(label, promiseLabel)
		switch {
		case isPromise:
			behavior.Promise, _ = url.QueryUnescape(strings.TrimSpace(promise)) // as it was escaped
		case isSource:
			behavior.Source, _ = url.QueryUnescape(strings.TrimSpace(source)) // as it was escaped
		case label == disruptiveLabel:
			behavior.Disruptive = true
		case isNeed:
			behavior.Features = append(behavior.Features, v1alpha1.Feature(strings.TrimSpace(need)))
		case label == slowLabel:
			behavior.Slow = true
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

// RepositoryPath shortens a path of the machine that compiled the binary to the part below the repository's root, for
// files of specs and of what they call.
func RepositoryPath(file string) string {
	for _, dir := range []string{"/suites/", "/framework/", "/fixtures/"} {
		if i := strings.LastIndex(file, dir); i >= 0 {
			return file[i+1:]
		}
	}
	return file
}
