package report

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// maxUnmet is how many behaviors Unmet names, and unmetLength how many characters of a message.
const maxUnmet, unmetLength = 20, 160

// unmet is a behavior that failed or errored.
type unmet struct {
	title, why, cause string
}

// Unmet lists the behaviors that failed or errored, for the end of a run, with their statements. Behaviors with one
// probable cause stand together, in the order of the first of them. A cluster that could not be tested is not listed:
// the verdict names it.
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
			where = Visible(fmt.Sprintf(" on %q", cluster.Name))
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
	// waits is how long was waited, in front of a message.
	waits = regexp.MustCompile(`\ATimed out after \S+: `)
	// names are the names of objects, which differ between behaviors.
	names = regexp.MustCompile(`"[^"]*"`)
)

// causeOf is what messages of failures with one cause have in common: the first line, without names and times.
func causeOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return OneLine(strings.TrimRight(names.ReplaceAllString(waits.ReplaceAllString(first, ""), `"..."`), ".:"), unmetLength)
}

func isUnmet(result v1alpha1.Result, strict bool) bool {
	return result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Errored || result.Outcome == v1alpha1.Deviated && strict
}
