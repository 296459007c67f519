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
	// unselected is the reason of filtered behaviors without one.
	unselected = "left out by this run's selection"
	// stopped is the reason of interrupted behaviors without one.
	stopped = "the run was stopped before this behavior was tested"
)

// Status is what a result means for the run, for formats that know fewer outcomes.
type Status int

const (
	// Pass: the behavior passed.
	Pass Status = iota
	// Fail: the behavior fails the run.
	Fail
	// Error: the run could not find out, or was interrupted during the test, so that it must not look green.
	Error
	// Tolerated: the behavior failed, and the run does not.
	Tolerated
	// Skip: the behavior was not tested for a reason.
	Skip
	// Pending: the run was interrupted before the test, or did not select it.
	Pending
)

// StatusOf returns the status of a result. Deviations fail a strict run.
func StatusOf(result v1alpha1.Result, strict bool) Status {
	switch result.Outcome {
	case v1alpha1.Passed:
		return Pass
	case v1alpha1.Failed, v1alpha1.Outdated:
		return Fail
	case v1alpha1.Known:
		return Tolerated
	case v1alpha1.Deviated:
		if strict {
			return Fail
		}
		return Tolerated
	case v1alpha1.Skipped:
		return Skip
	case v1alpha1.Filtered:
		return Pending
	case v1alpha1.Interrupted:
		if result.Start.IsZero() {
			return Pending
		}
	}
	return Error
}

// Message returns the message of a result: of the failure, or why it was not tested; empty for a passed one.
func Message(result v1alpha1.Result) string {
	switch result.Outcome {
	case v1alpha1.Passed:
		return ""
	case v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Deviated:
		return failureMessage(result)
	}
	return ReasonOf(result)
}

// failureMessage returns the message of a failed or deviated behavior, and then its reason, which quotes the list of known failures.
func failureMessage(result v1alpha1.Result) string {
	var parts []string
	if result.Failure != nil && result.Failure.Message != "" {
		parts = append(parts, result.Failure.Message)
	}
	if result.Reason != "" {
		parts = append(parts, result.Reason)
	}
	if len(parts) == 0 {
		return "no message was recorded"
	}
	return strings.Join(parts, "\n\n")
}

// ReasonOf returns why a result was not tested. Errored results may have their message in a failure.
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

// inMessage are the outcomes whose failures are in their Message.
var inMessage = []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Outdated, v1alpha1.Deviated}

// FailureDetails returns the details of a failure: its location, why objects still exist, and the timeline.
func FailureDetails(result v1alpha1.Result) string {
	var parts []string
	if failure := result.Failure; failure != nil {
		if failure.Message != "" && result.Reason != "" && !slices.Contains(inMessage, result.Outcome) {
			parts = append(parts, failure.Message)
		}
		if failure.Location != "" {
			parts = append(parts, "At "+failure.Location)
		}
		if len(failure.Explanation) > 0 {
			parts = append(parts, "Remaining objects:\n  "+strings.Join(failure.Explanation, "\n  "))
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

// Tries describes why a behavior was retried; empty for one that was tested once.
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

// Features returns features as a line of text.
func Features(features []v1alpha1.Feature) string {
	names := make([]string, len(features))
	for i, feature := range features {
		names[i] = string(feature)
	}
	return strings.Join(names, " ")
}

// ReasonGroup is one reason with the ids of the behaviors that were not tested because of it.
type ReasonGroup struct {
	Reason string
	IDs    []string
}

// WasTested reports whether a behavior was tested, with any outcome.
func WasTested(result v1alpha1.Result) bool {
	switch result.Outcome {
	case v1alpha1.Passed, v1alpha1.Failed, v1alpha1.Known, v1alpha1.Outdated, v1alpha1.Deviated:
		return true
	}
	return false
}

// WasSelected reports whether a run selected a behavior.
func WasSelected(result v1alpha1.Result) bool { return result.Outcome != v1alpha1.Filtered }

// IsClusterProblem reports whether a behavior was not tested because its cluster could not be, which is reported once for the cluster.
func IsClusterProblem(cluster v1alpha1.Cluster, result v1alpha1.Result) bool {
	return cluster.Problem != "" && result.Outcome == v1alpha1.Errored && result.Reason == cluster.Problem
}

// ByReason groups results of some outcomes by reason, the most frequent first.
func ByReason(results []v1alpha1.Result, outcomes ...v1alpha1.Outcome) []ReasonGroup {
	ids := map[string][]string{}
	for _, result := range results {
		if slices.Contains(outcomes, result.Outcome) {
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
