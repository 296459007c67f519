package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// causeLength limits a cause that is taken from a message, in characters.
const causeLength = 160

// CauseGroup are the results with one cause.
type CauseGroup struct {
	v1alpha1.Cause
	Results []LocatedResult
}

// LocatedResult is a result with its cluster, by their index in the report.
type LocatedResult struct {
	Cluster int
	v1alpha1.Result
}

// Causes groups the results with some outcomes by cause, first those that explain most failures, then most results. Results of a cluster
// that could not be tested are left out, because the verdict names the reason.
func Causes(r v1alpha1.Report, outcomes ...v1alpha1.Outcome) []CauseGroup {
	var groups []CauseGroup
	indexes := map[string]int{}
	for c, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if !slices.Contains(outcomes, result.Outcome) || IsClusterProblem(cluster, result) {
				continue
			}
			cause := causeOf(result)
			i, known := indexes[cause]
			if !known {
				i, indexes[cause] = len(groups), len(groups)
				groups = append(groups, CauseGroup{Cause: v1alpha1.Cause{Cause: cause}})
			}
			groups[i].add(LocatedResult{c, result})
		}
	}
	slices.SortStableFunc(groups, func(a, b CauseGroup) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(len(b.Results), len(a.Results)))
	})
	return groups
}

func (g *CauseGroup) add(result LocatedResult) {
	g.Results = append(g.Results, result)
	switch result.Outcome {
	case v1alpha1.Errored:
		g.Errored++
	case v1alpha1.Deviated:
		g.Deviated++
	default:
		g.Failed++
	}
	if i, known := slices.BinarySearch(g.Behaviors, result.ID); !known {
		g.Behaviors = slices.Insert(g.Behaviors, i, result.ID)
	}
}

// withCause are the outcomes that have a cause in a report.
var withCause = []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Deviated, v1alpha1.Errored}

// CauseOf returns the cause with which a report counts a result. It is empty for outcomes that have none.
func CauseOf(result v1alpha1.Result) string {
	if !slices.Contains(withCause, result.Outcome) {
		return ""
	}
	return causeOf(result)
}

// causesOf returns all causes of a report.
func causesOf(r v1alpha1.Report) []v1alpha1.Cause {
	var causes []v1alpha1.Cause
	for _, group := range Causes(r, withCause...) {
		causes = append(causes, group.Cause)
	}
	return causes
}

var (
	// waits matches the timeout at the start of a message.
	waits = regexp.MustCompile(`\ATimed out after \S+: `)
	// details match what differs between behaviors: names of objects, remarks in parentheses, paths of requests, versions, uids and times.
	details = []struct {
		*regexp.Regexp
		short string
	}{
		{regexp.MustCompile(`"[^"]*"`), `"..."`},
		{regexp.MustCompile(` \([^()]*\)`), ""},
		{regexp.MustCompile(` /apis?/\S+`), ""},
		{regexp.MustCompile(`\b(\d{4,}|\d\d:\d\d:\d\d|[0-9a-f]{8}-[0-9a-f-]{27})\b`), "..."},
	}
)

// causeOf returns the cause of a result: the recognized one, or else the common part of the messages of failures with one cause, which is
// the first line without details.
func causeOf(result v1alpha1.Result) string {
	message := result.Reason
	if result.Failure != nil && result.Outcome != v1alpha1.Errored {
		if result.Failure.Cause != "" {
			return OneLine(result.Failure.Cause, causeLength)
		}
		message = result.Failure.Message
	}
	first, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(message, ReasonOf(result))), "\n")
	first = waits.ReplaceAllString(first, "")
	for _, detail := range details {
		first = detail.ReplaceAllString(first, detail.short)
	}
	return OneLine(strings.TrimRight(first, ".:"), causeLength)
}

// maxCauses limits the causes that FailureLines lists, maxBehaviorsOfCause the behaviors of each, and failureLength a statement or a
// message in characters.
const maxCauses, maxBehaviorsOfCause, failureLength = 20, 5, 160

// FailureLines lists the behaviors that failed or errored by cause, for the end of a run, with their statements. A cluster that could not
// be tested is not listed, because the verdict names it.
func FailureLines(whole v1alpha1.Report) []string {
	outcomes := []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Errored}
	if whole.Strict {
		outcomes = append(outcomes, v1alpha1.Deviated)
	}
	var lines []string
	groups := Causes(whole, outcomes...)
	for _, group := range groups[:min(len(groups), maxCauses)] {
		if len(group.Results) == 1 {
			lines = append(lines, "  "+title(whole, group.Results[0]), "    "+OneLine(failureMessage(group.Results[0].Result), failureLength))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s, probably with one cause: %s", Behaviors(len(group.Results)), group.Cause.Cause))
		for _, result := range group.Results[:min(len(group.Results), maxBehaviorsOfCause)] {
			lines = append(lines, "    "+title(whole, result))
		}
		if more := len(group.Results) - maxBehaviorsOfCause; more > 0 {
			lines = append(lines, fmt.Sprintf("    and %d more", more))
		}
	}
	if more := len(groups) - maxCauses; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// title describes a result in a line.
func title(whole v1alpha1.Report, result LocatedResult) string {
	where := ""
	if len(whole.Clusters) > 1 {
		where = fmt.Sprintf(" on %q", whole.Clusters[result.Cluster].Name)
	}
	return fmt.Sprintf("%s %s%s: %s", result.Outcome, result.ID, where, OneLine(result.Statement, failureLength))
}
