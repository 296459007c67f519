package preflight

import "github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

// A cluster has findings, one or more for each check. A finding with a skip reason names the behaviors that are skipped.

// The checks, in the order of reports.
const (
	serverCheck      = "server"
	credentialsCheck = "credentials"
	featuresCheck    = "features"
	kindsCheck       = "kinds"
	admissionCheck   = "admission"
	apiServicesCheck = "apiservices"
	nodesCheck       = "nodes"
	quotaCheck       = "quota"
	sidecarsCheck    = "sidecars"
	networkCheck     = "networkpolicy"
	clockCheck       = "clock"
	latencyCheck     = "latency"
)

var checksInOrder = []string{
	serverCheck, credentialsCheck, featuresCheck, kindsCheck, admissionCheck, apiServicesCheck, nodesCheck, quotaCheck, sidecarsCheck, networkCheck,
	clockCheck, latencyCheck,
}

// skipReason is why behaviors are skipped, with the check and the remedy of the finding. A probe returns it as its error where a feature is
// missing. Without a check, the finding is that the feature is missing.
type skipReason struct{ check, text, remedy string }

func (r skipReason) Error() string { return r.text }

func (r skipReason) finding(behaviors []string) v1alpha1.Finding {
	return v1alpha1.Finding{
		Check: r.check, Severity: v1alpha1.Skips, Cause: r.text, Effect: v1alpha1.SkippedEffect(len(behaviors)), Behaviors: behaviors, Remedy: r.remedy,
	}
}

// skip is a skip reason that is known before the specs, with their behaviors.
type skip struct {
	skipReason
	behaviors []string
	// announced is set when the behaviors skip themselves.
	announced bool
}
