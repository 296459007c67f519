package run

import (
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/specs"
)

// resultOf converts Ginkgo's report of a spec.
func resultOf(spec types.SpecReport) v1alpha1.Result {
	behavior, _ := specs.BehaviorOf(spec)
	evidence := specs.EvidenceOf(spec)
	result := v1alpha1.Result{
		Behavior: behavior, Start: spec.StartTime, Seconds: spec.RunTime.Seconds(), Timeline: evidence.Timeline,
	}
	switch {
	case spec.State.Is(types.SpecStatePassed):
		result.Outcome = v1alpha1.Passed
	case spec.State.Is(types.SpecStatePending):
		result.Outcome, result.Reason = v1alpha1.Skipped, "marked as pending"
	case spec.State.Is(types.SpecStateSkipped):
		result.Outcome, result.Reason = v1alpha1.Skipped, spec.Failure.Message
	case spec.State.Is(types.SpecStateInterrupted | types.SpecStateAborted):
		result.Outcome, result.Reason = v1alpha1.Interrupted, "interrupted while it ran"
	case evidence.SkipReason != "":
		result.Outcome, result.Reason = v1alpha1.Skipped, evidence.SkipReason
	case evidence.RunError != "":
		result.Outcome, result.Reason = v1alpha1.Errored, evidence.RunError
	default:
		result.Outcome = v1alpha1.Failed
		if behavior.Level == v1alpha1.Observed {
			result.Outcome = v1alpha1.Deviated
		}
		result.Failure = failureOf(spec.Failure, evidence)
	}
	return result
}

// after adds an earlier result as an attempt, after a connection error and a retry.
func after(before, result v1alpha1.Result) v1alpha1.Result {
	try := v1alpha1.Try{Reason: before.Reason, Start: before.Start, Seconds: before.Seconds}
	result.Tries = append(slices.Clone(before.Tries), try)
	return result
}

func failureOf(failure types.Failure, evidence specs.Evidence) *v1alpha1.Failure {
	message := failure.Message
	if failure.ForwardedPanic != "" {
		message = "panic: " + failure.ForwardedPanic
	}
	location := failure.Location
	if failure.TimelineLocation.Offset == 0 && location.FileName == "" {
		location = failure.FailureNodeLocation
	}
	return &v1alpha1.Failure{
		Message:     message,
		Location:    fmt.Sprintf("%s:%d", specs.RepositoryPath(location.FileName), location.LineNumber),
		Cause:       evidence.Cause,
		Explanation: evidence.Explanation,
	}
}
