package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// maxUnmet limits the behaviors in Unmet, and unmetLength a message, in characters.
const maxUnmet, unmetLength = 20, 160

// unmet is a behavior that failed or errored, or that passed although it is known to fail.
type unmet struct {
	title, why, cause string
}

// Unmet lists the behaviors that failed or errored, for the end of a run, with their statements. Behaviors with one probable cause are
// grouped, in the order of the first one. A cluster that could not be tested is not listed, because the verdict names it.
func Unmet(whole v1alpha1.Report) []string {
	var causes []string
	groups := map[string][]unmet{}
	for _, one := range unmetOf(whole) {
		if groups[one.cause] == nil {
			causes = append(causes, one.cause)
		}
		groups[one.cause] = append(groups[one.cause], one)
	}
	var lines []string
	left := maxUnmet
	more := 0
	for _, cause := range causes {
		group := groups[cause]
		shown := group[:min(len(group), left)]
		left -= len(shown)
		more += len(group) - len(shown)
		switch {
		case len(shown) == 0:
		case len(group) == 1:
			lines = append(lines, "  "+shown[0].title, "    "+shown[0].why)
		default:
			lines = append(lines, fmt.Sprintf("  %s, probably with one cause: %s", Behaviors(len(group)), cause))
			for _, one := range shown {
				lines = append(lines, "    "+one.title)
			}
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

func unmetOf(whole v1alpha1.Report) []unmet {
	var all []unmet
	for _, cluster := range whole.Clusters {
		if cluster.Problem != "" {
			continue
		}
		where := ""
		if len(whole.Clusters) > 1 {
			where = fmt.Sprintf(" on %q", cluster.Name)
		}
		for _, result := range cluster.Results {
			if !isUnmet(result, whole.Strict) {
				continue
			}
			why := result.Reason
			if result.Failure != nil {
				why = result.Failure.Message
			}
			all = append(all, unmet{
				title: fmt.Sprintf("%s %s%s: %s", result.Outcome, result.ID, where, OneLine(result.Statement, unmetLength)),
				why:   OneLine(why, unmetLength), cause: causeOf(why),
			})
		}
	}
	return all
}

var (
	// waits matches the timeout at the start of a message.
	waits = regexp.MustCompile(`\ATimed out after \S+: `)
	// names matches names of objects, which differ between behaviors.
	names = regexp.MustCompile(`"[^"]*"`)
)

// causeOf returns the common part of the messages of failures with one cause: the first line, without names and times.
func causeOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return OneLine(strings.TrimRight(names.ReplaceAllString(waits.ReplaceAllString(first, ""), `"..."`), ".:"), unmetLength)
}

func isUnmet(result v1alpha1.Result, strict bool) bool {
	fails := []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Errored}
	return slices.Contains(fails, result.Outcome) || result.Outcome == v1alpha1.Deviated && strict
}
