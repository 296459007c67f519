package report

import (
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// maxUnmet is how many behaviors Unmet names, and unmetLength how many characters of why.
const maxUnmet, unmetLength = 20, 160

// Unmet is a line for each behavior that failed, or could not be tested, for the end of a run: that is what people see
// first. Of clusters that could not be tested at all the verdict says all.
func Unmet(whole v1alpha1.Report) []string {
	var lines []string
	for _, cluster := range whole.Clusters {
		if cluster.Problem != "" {
			continue
		}
		where := ""
		if len(whole.Clusters) > 1 {
			where = Visible(fmt.Sprintf(" on %q", cluster.Name))
		}
		for _, result := range cluster.Results {
			why := result.Reason
			if result.Failure != nil {
				why = result.Failure.Message
			}
			if isUnmet(result, whole.Strict) {
				lines = append(lines, fmt.Sprintf("  %s %s%s: %s", result.Outcome, result.ID, where, OneLine(why, unmetLength)))
			}
		}
	}
	if more := len(lines) - maxUnmet; more > 0 {
		lines = append(lines[:maxUnmet], fmt.Sprintf("  and %d more", more))
	}
	return lines
}

func isUnmet(result v1alpha1.Result, strict bool) bool {
	return result.Outcome == v1alpha1.Failed || result.Outcome == v1alpha1.Errored || result.Outcome == v1alpha1.Deviated && strict
}
