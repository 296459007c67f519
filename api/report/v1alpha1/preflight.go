package v1alpha1

import "fmt"

// Severity is what a finding means for a run.
type Severity string

const (
	// OK means that a check found nothing that affects the run.
	OK Severity = "ok"
	// Notice means that a check found something that is tolerated: all behaviors still run.
	Notice Severity = "notice"
	// Skips means that behaviors are skipped because of what was found.
	Skips Severity = "skips"
	// Unknown means that the check could not be made, such as for a missing permission.
	Unknown Severity = "unknown"
)

// SkippedEffect is the effect of a finding that skips so many behaviors.
func SkippedEffect(behaviors int) string {
	if behaviors == 1 {
		return "1 behavior skipped"
	}
	return fmt.Sprintf("%d behaviors skipped", behaviors)
}

// Finding is the result of one preflight check of a cluster.
type Finding struct {
	// Check names what was looked at: server, credentials, admission, apiservices, nodes, quota,
	// sidecars, networkpolicy, clock, latency, and features for what the cluster lacks.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Cause says what was found and quotes who refused, changed or deleted something.
	Cause string `json:"cause"`
	// Effect says what that means for the run; empty when it means nothing.
	Effect string `json:"effect,omitempty"`
	// Behaviors are the ids of the selected behaviors that are skipped because of it.
	Behaviors []string `json:"behaviors,omitempty"`
	// Remedy says what to do about it, as a flag of the runner where there is one; empty when nothing helps.
	Remedy string `json:"remedy,omitempty"`
}
