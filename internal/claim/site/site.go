// Package site writes verified claims as a static site: a matrix of implementations, versions and profiles, a page for each claim and each
// behavior, the changes between versions, the time that deletions took, and badges. The pages need no network and no scripts.
package site

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
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
	dir     string
	catalog map[string]v1alpha1.Behavior
	entries []*entry
}

// entry is one claim.
type entry struct {
	// slug names the files of the claim.
	slug   string
	claim  v1alpha1.ConformanceReport
	remark string
	// differences are those between the catalog of the claim and that of the site.
	differences []string
	// states are the results of the claimed profiles.
	states  map[string]state
	figures []v1alpha1.Figure
}

// state is the result of a behavior in a claim.
type state struct {
	Outcome v1alpha1.Outcome
	// Reason is why it was skipped, or the message of a failure.
	Reason string
	// Evidence contains the location and the timeline of a failure.
	Evidence string
	// comparable is set if the behavior is the same in the catalog of the site.
	comparable bool
}

// New returns an empty site, which is written to a directory. Its descriptions of behaviors are those of the catalog, never those of a claim.
func New(dir string, catalog []v1alpha1.Behavior) *Site {
	s := &Site{dir: dir, catalog: map[string]v1alpha1.Behavior{}}
	for _, behavior := range catalog {
		s.catalog[behavior.ID] = behavior
	}
	return s
}

// Add adds a claim that follows from its report, and writes a copy of it, so that everyone can verify it. It keeps no more of the report than
// the site shows. The error names the file that cannot be written.
func (s *Site) Add(content []byte, of claim.Verification) error {
	implementation := of.Claim.Implementation
	e := &entry{
		slug:  slugOf(string(content), implementation.Project, implementation.Version, "kubernetes", of.Claim.Environment.ServerVersion),
		claim: of.Claim, remark: remarkOn(of), states: map[string]state{}, figures: of.Cluster.Figures,
	}
	e.claim.Evidence.Report = nil
	if slices.ContainsFunc(s.entries, func(other *entry) bool { return other.slug == e.slug }) {
		return nil // another copy of the same file
	}
	for _, difference := range of.Catalog {
		e.differences = append(e.differences, difference.What)
	}
	claimed := map[v1alpha1.Profile]bool{}
	for _, profile := range of.Claim.Profiles {
		claimed[profile.Profile] = true
	}
	for _, result := range of.Cluster.Results {
		if claimed[result.Profile()] {
			found := stateOf(result)
			found.comparable = claim.SameBehavior(result.Behavior, s.catalog[result.ID], of.Cluster)
			e.states[result.ID] = found
		}
	}
	s.entries = append(s.entries, e)
	return write(s.dir, map[string][]byte{filepath.Join(claimsDir, e.slug+".json"): content})
}

// remarkOn is what stands next to the conclusions of a claim: that it is of another catalog, or of a runner with uncommitted changes.
func remarkOn(of claim.Verification) string {
	runner := report.OneLine(of.Claim.Runner, versionLength)
	switch {
	case len(of.Catalog) > 0:
		return "catalog of " + runner
	case claim.IsModified(of.Claim):
		return "modified runner " + runner
	}
	return ""
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
	return state{Outcome: result.Outcome, Reason: report.FailureMessage(result), Evidence: report.FailureDetails(result)}
}

// in returns the result of a behavior of the catalog.
func (e *entry) in(id string) (state, bool) {
	found, ok := e.states[id]
	return found, ok && found.comparable
}

// unsafe matches what cannot be a part of a file name.
var unsafe = regexp.MustCompile(`[^a-z0-9.]+`)

// slugOf names files after some texts. It contains a digest of what the files are about. So no other claim can take or change the name.
func slugOf(about string, texts ...string) string {
	sum := sha256.Sum256([]byte(about))
	readable := strings.Trim(unsafe.ReplaceAllString(strings.ToLower(strings.Join(texts, "-")), "-"), "-.")
	return fmt.Sprintf("%s-%x", readable[:min(len(readable), slugLength)], sum[:8])
}

const (
	// titleLength limits a title, and versionLength the version of a runner in a remark, in characters.
	titleLength, versionLength = 250, 40
	// slugLength limits the readable part of the name of a file, in bytes.
	slugLength = 100
)

// title names a claim. The organization is a part of every name, because two may claim the same project.
func (e *entry) title() string {
	return e.named(e.claim.Implementation.Version)
}

// subject is what claims of several versions are about: a project of an organization, and the resource of its cluster.
func (e *entry) subject() string {
	return e.named(e.claim.Environment.Resource)
}

func (e *entry) named(what string) string {
	return report.OneLine(fmt.Sprintf("%s %s (%s)", e.claim.Implementation.Project, what, e.claim.Implementation.Organization), titleLength)
}

// compare orders claims of one subject: by the version of the implementation, then by that of Kubernetes, then by time.
func (e *entry) compare(other *entry) int {
	return cmp.Or(compareVersions(e.claim.Implementation.Version, other.claim.Implementation.Version),
		compareVersions(e.claim.Environment.ServerVersion, other.claim.Environment.ServerVersion), e.claim.End.Compare(other.claim.End), strings.Compare(e.slug, other.slug))
}

// compareVersions compares versions by their numbers, and as text when they have none.
func compareVersions(a, b string) int {
	left, err := version.ParseGeneric(a)
	right, otherErr := version.ParseGeneric(b)
	switch {
	case err != nil || otherErr != nil:
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
	subjects := map[string]line{}
	for _, e := range s.entries {
		of, resource := e.claim.Implementation, e.claim.Environment.Resource
		slug := slugOf(fmt.Sprintf("%q", []string{of.Organization, of.Project, resource}), of.Organization, of.Project, resource)
		subjects[slug] = line{e.subject(), slug, append(subjects[slug].entries, e)}
	}
	lines := slices.SortedFunc(maps.Values(subjects), func(a, b line) int {
		return cmp.Or(strings.Compare(a.subject, b.subject), strings.Compare(a.slug, b.slug))
	})
	for _, line := range lines {
		slices.SortStableFunc(line.entries, (*entry).compare)
	}
	return lines
}

// since returns the state of a behavior in the newest claim that has it, with the first version of those that had the same without a break.
func (l line) since(id string) (newest state, first, last *entry) {
	for _, e := range slices.Backward(l.entries) {
		found, has := e.in(id)
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
		was, had := before.in(id)
		now, has := after.in(id)
		if had && has && was.Outcome != now.Outcome {
			all = append(all, change{id, was.Outcome, now.Outcome})
		}
	}
	return all
}
