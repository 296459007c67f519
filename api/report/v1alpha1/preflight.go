package v1alpha1

import "fmt"

// Severity is the effect of a finding on a run.
type Severity string

const (
	// OK means that a check found nothing that affects the run.
	OK Severity = "ok"
	// Notice means that a check found something that is tolerated: all behaviors still run.
	Notice Severity = "notice"
	// Skips means that behaviors are skipped because of the finding.
	Skips Severity = "skips"
	// Unknown means that the check failed, for example because of a missing permission.
	Unknown Severity = "unknown"
)

// SkippedEffect describes the effect of a finding that skips this many behaviors.
func SkippedEffect(behaviors int) string {
	if behaviors == 1 {
		return "1 behavior skipped"
	}
	return fmt.Sprintf("%d behaviors skipped", behaviors)
}

// Finding is the result of one preflight check of a cluster.
type Finding struct {
	// Check is the name of the check: server, credentials, admission, apiservices, nodes, quota, sidecars, networkpolicy, clock, latency,
	// or features for missing features.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Cause is what was found, with the policy, webhook or client that refused, changed or deleted something.
	Cause string `json:"cause"`
	// Effect is the effect on the run; empty when there is none.
	Effect string `json:"effect,omitempty"`
	// Behaviors are the ids of the selected behaviors that are skipped because of it.
	Behaviors []string `json:"behaviors,omitempty"`
	// Remedy is what to do about it, as a flag of the runner if there is one; empty when there is none.
	Remedy string `json:"remedy,omitempty"`
}
