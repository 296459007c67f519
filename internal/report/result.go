package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

const (
	// unselected is said of filtered behaviors that give no reason of their own.
	unselected = "left out by this run's selection"
	// stopped is said of interrupted behaviors that give no reason of their own.
	stopped = "the run was stopped before this behavior was tested"
)

// FailureMessage is what a failed or deviated behavior says.
func FailureMessage(result v1alpha1.Result) string {
	if result.Failure != nil && result.Failure.Message != "" {
		return result.Failure.Message
	}
	if result.Reason != "" {
		return result.Reason
	}
	return "no message was recorded"
}

// ReasonOf says why a result was not tested. Errored results may carry their message as a failure.
func ReasonOf(result v1alpha1.Result) string {
	switch {
	case result.Reason != "":
		return result.Reason
	case result.Failure != nil && result.Failure.Message != "":
		return result.Failure.Message
	case result.Outcome == v1alpha1.Filtered:
		return unselected
	case result.Outcome == v1alpha1.Interrupted:
		return stopped
	}
	return "no reason was recorded"
}

// Evidence is what stands behind the message: where it failed, why objects are still there, and the timeline.
func Evidence(result v1alpha1.Result) string {
	var parts []string
	if failure := result.Failure; failure != nil {
		if failure.Message != "" && result.Reason != "" && result.Outcome != v1alpha1.Failed && result.Outcome != v1alpha1.Deviated {
			parts = append(parts, failure.Message)
		}
		if failure.Location != "" {
			parts = append(parts, "At "+failure.Location)
		}
		if len(failure.Explanation) > 0 {
			parts = append(parts, "Still there, and why:\n  "+strings.Join(failure.Explanation, "\n  "))
		}
	}
	if tries := Tries(result); tries != "" {
		parts = append(parts, tries)
	}
	if result.Outcome != v1alpha1.Passed {
		if timeline := timelineText(result.Timeline); timeline != "" {
			parts = append(parts, "Timeline, in seconds since its first entry:\n"+timeline)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Tries says why a behavior was retried; it is empty for one that was tested once.
func Tries(result v1alpha1.Result) string {
	if len(result.Tries) == 0 {
		return ""
	}
	lines := []string{"Retried from the start, because it could not be tested before:"}
	for i, try := range result.Tries {
		lines = append(lines, fmt.Sprintf("  try %d (%s): %s", i+1, Seconds(try.Seconds), try.Reason))
	}
	return strings.Join(lines, "\n")
}

// Features are needs as a line of text.
func Features(needs []v1alpha1.Feature) string {
	names := make([]string, len(needs))
	for i, need := range needs {
		names[i] = string(need)
	}
	return strings.Join(names, " ")
}

// ReasonGroup is one reason and the ids of the behaviors that were not tested for it.
type ReasonGroup struct {
	Reason string
	IDs    []string
}

// UntestedByReason groups what was skipped, filtered or interrupted by reason, the most frequent first.
func UntestedByReason(results []v1alpha1.Result) []ReasonGroup {
	ids := map[string][]string{}
	for _, result := range results {
		switch result.Outcome {
		case v1alpha1.Skipped, v1alpha1.Filtered, v1alpha1.Interrupted:
			reason := ReasonOf(result)
			ids[reason] = append(ids[reason], result.ID)
		}
	}
	var groups []ReasonGroup
	for _, reason := range slices.Sorted(maps.Keys(ids)) {
		groups = append(groups, ReasonGroup{reason, ids[reason]})
	}
	slices.SortStableFunc(groups, func(a, b ReasonGroup) int { return cmp.Compare(len(b.IDs), len(a.IDs)) })
	return groups
}
