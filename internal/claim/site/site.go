// Package site writes verified claims as a static site: a matrix of implementations, versions and profiles, a page for each claim and each
// behavior, the changes between versions, the time that deletions took, and badges. The pages need no network and no scripts.
package site

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// Site is the content of a site.
type Site struct {
	entries   []*entry
	behaviors map[string]v1alpha1.Behavior
	// newest is the time of the claim whose description of a behavior is shown.
	newest map[string]int64
}

// entry is one claim.
type entry struct {
	// slug names the files of the claim, and file is where it was read from.
	slug, file string
	claim      v1alpha1.ConformanceReport
	current    bool
	states     map[string]state
	figures    []v1alpha1.Figure
}

// state is the result of a behavior in a claim.
type state struct {
	Outcome v1alpha1.Outcome
	// Reason is why it was skipped, or the message of a failure.
	Reason string
	// Evidence contains the location and the timeline of a failure.
	Evidence string
}

// fileName matches ids that can be names of files on every system.
var fileName = regexp.MustCompile(`^[a-z]+(\.[a-zA-Z0-9-]+)+$`)

// New returns an empty site.
func New() *Site {
	return &Site{behaviors: map[string]v1alpha1.Behavior{}, newest: map[string]int64{}}
}

// Add adds a claim that holds, with the file that it was read from, which Write copies. It keeps no more of the report than the site shows. It fails if a behavior has an id that cannot be the name of a
// page.
func (s *Site) Add(file string, of v1alpha1.ConformanceReport, examined claim.Examined) error {
	e := &entry{file: file, claim: of, current: examined.Current, states: map[string]state{}, figures: examined.Cluster.Figures}
	e.claim.Evidence.Report = nil
	claimed := map[v1alpha1.Profile]bool{}
	for _, profile := range of.Profiles {
		claimed[profile.Profile] = true
	}
	for _, result := range examined.Cluster.Results {
		if !claimed[result.Profile()] {
			continue
		}
		if !fileName.MatchString(result.ID) {
			return fmt.Errorf("behavior id %.60q cannot be the name of a page", result.ID)
		}
		e.states[result.ID] = stateOf(result)
		if at := of.End.UnixNano(); s.newest[result.ID] <= at {
			s.newest[result.ID], s.behaviors[result.ID] = at, result.Behavior
		}
	}
	e.slug = s.slug(of)
	s.entries = append(s.entries, e)
	return nil
}

// stateOf summarizes a result. Known failures are failures.
func stateOf(result v1alpha1.Result) state {
	switch {
	case result.Outcome == v1alpha1.Passed:
		return state{Outcome: v1alpha1.Passed}
	case result.Outcome == v1alpha1.Skipped:
		return state{Outcome: v1alpha1.Skipped, Reason: report.ReasonOf(result)}
	case result.Level == v1alpha1.Observed:
		result.Outcome = v1alpha1.Deviated
	default:
		result.Outcome = v1alpha1.Failed
	}
	return state{Outcome: result.Outcome, Reason: report.FailureMessage(result), Evidence: report.Evidence(result)}
}

// unsafe matches what cannot be a part of a file name.
var unsafe = regexp.MustCompile(`[^a-z0-9.]+`)

// slug names the files of a claim: project, version and version of Kubernetes.
func (s *Site) slug(of v1alpha1.ConformanceReport) string {
	name := strings.Join([]string{of.Implementation.Project, of.Implementation.Version, "kubernetes", of.Environment.ServerVersion, of.Environment.Resource}, "-")
	return slugOf(name, func(slug string) bool {
		return slices.ContainsFunc(s.entries, func(e *entry) bool { return e.slug == slug })
	})
}

// slugOf returns a text as a part of a file name that is not taken yet.
func slugOf(text string, taken func(string) bool) string {
	base := cmp.Or(strings.Trim(unsafe.ReplaceAllString(strings.ToLower(text), "-"), "-."), "claim")
	slug := base
	for n := 2; taken(slug); n++ {
		slug = fmt.Sprintf("%s-%d", base, n)
	}
	return slug
}

// title names a claim.
func (e *entry) title() string {
	return report.OneLine(e.claim.Implementation.Project+" "+e.claim.Implementation.Version, titleLength)
}

// titleLength limits a title, in characters.
const titleLength = 120

// subject is what claims of several versions are about: a project, and the resource of its cluster.
func (e *entry) subject() string {
	return report.OneLine(strings.TrimSpace(e.claim.Implementation.Project+" "+e.claim.Environment.Resource), titleLength)
}

// compare orders claims of one subject: by the version of the implementation, then by that of Kubernetes, then by time.
func (e *entry) compare(other *entry) int {
	return cmp.Or(compareVersions(e.claim.Implementation.Version, other.claim.Implementation.Version),
		compareVersions(e.claim.Environment.ServerVersion, other.claim.Environment.ServerVersion), e.claim.End.Compare(other.claim.End))
}

// compareVersions compares versions by their numbers, and as text when they have none.
func compareVersions(a, b string) int {
	left, wrong := version.ParseGeneric(a)
	right, alsoWrong := version.ParseGeneric(b)
	switch {
	case wrong != nil || alsoWrong != nil:
		return strings.Compare(a, b)
	case left.LessThan(right):
		return -1
	case right.LessThan(left):
		return 1
	}
	return strings.Compare(a, b)
}

// line contains the claims of one subject, the oldest version first.
type line struct {
	// slug names the badges of the newest claim.
	subject, slug string
	entries       []*entry
}

// lines returns the subjects, sorted by name.
func (s *Site) lines() []line {
	subjects := map[string][]*entry{}
	for _, e := range s.entries {
		subjects[e.subject()] = append(subjects[e.subject()], e)
	}
	var lines []line
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		entries := subjects[subject]
		slices.SortStableFunc(entries, (*entry).compare)
		slug := slugOf(subject, func(slug string) bool { return slices.ContainsFunc(lines, func(l line) bool { return l.slug == slug }) })
		lines = append(lines, line{subject, slug, entries})
	}
	return lines
}

// since returns the state of a behavior in the newest claim that has it, with the first version of those that had the same without a break.
func (l line) since(id string) (newest state, first, last *entry) {
	for _, e := range slices.Backward(l.entries) {
		found, has := e.states[id]
		switch {
		case !has:
			continue
		case last == nil:
			newest, first, last = found, e, e
		case found.Outcome == newest.Outcome:
			first = e
		default:
			return newest, first, last
		}
	}
	return newest, first, last
}

// change is a behavior whose result differs between two versions.
type change struct {
	ID            string
	Before, After v1alpha1.Outcome
}

// changes returns the behaviors whose results differ between two claims, sorted by id. Behaviors that only one claim has are not compared.
func changes(before, after *entry) []change {
	var all []change
	for _, id := range slices.Sorted(maps.Keys(after.states)) {
		was, had := before.states[id]
		if is := after.states[id]; had && was.Outcome != is.Outcome {
			all = append(all, change{id, was.Outcome, is.Outcome})
		}
	}
	return all
}
