package v1alpha1

import "time"

// ClaimKind is the kind of a claim.
const ClaimKind = "ConformanceReport"

// ConformanceReport is a claim: what an implementation of Kubernetes passes, with the report that shows it. Everything except the
// implementation is derived from that report, so `runner verify` can compute it again.
type ConformanceReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Implementation is what was tested, by whom and how.
	Implementation Implementation `json:"implementation"`
	// Runner is the version of the runner that made the report.
	Runner string `json:"runner"`
	// RunID is the id of the run, or the ids of several with "+" between them.
	RunID string    `json:"runID"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Shards are the parts of a run that was distributed, such as "1/2" and "2/2"; empty for a run of one part.
	Shards []string `json:"shards,omitempty"`
	// Environment is the cluster, as the run found it.
	Environment ClaimEnvironment `json:"environment"`
	// Catalog identifies the behaviors that the runner knew.
	Catalog ClaimCatalog `json:"catalog"`
	// Selection is the part of the catalog that the run selected.
	Selection ClaimSelection `json:"selection"`
	// Profiles are the results, one entry for each claimed profile, in the order of Profiles.
	Profiles []ProfileResult `json:"profiles"`
	// Evidence is the report that the claim is derived from.
	Evidence ClaimEvidence `json:"evidence"`
}

// Implementation describes what a claim is about. It is stated by those who make the claim and cannot be derived from a report.
type Implementation struct {
	// Organization is who develops or operates the implementation.
	Organization string `json:"organization" jsonschema:"maxLength=80"`
	// Project is the name of the implementation.
	Project string `json:"project" jsonschema:"maxLength=80"`
	// Version is the version of the implementation. The version of Kubernetes that its server returned is in the environment.
	Version string `json:"version" jsonschema:"maxLength=80"`
	// URL is the page of the implementation.
	URL string `json:"url" jsonschema:"maxLength=2000"`
	// Contact is who answers questions about the claim: addresses or names of teams.
	Contact []string `json:"contact"`
	// Reproduce is how to make the report again: the command, and what it needs.
	Reproduce string `json:"reproduce" jsonschema:"maxLength=2000"`
}

// ClaimEnvironment is the cluster of a claim, as its servers described it to the run.
type ClaimEnvironment struct {
	// Cluster is the name of the cluster in the report.
	Cluster string `json:"cluster"`
	// Resource is the resource that was tested instead of ConfigMaps; empty for ConfigMaps.
	Resource string `json:"resource,omitempty"`
	// ServerVersion is the version that the API server returned.
	ServerVersion string `json:"serverVersion"`
	// NodeRuntime is the container runtime that the nodes reported; empty without nodes.
	NodeRuntime string `json:"nodeRuntime,omitempty"`
	// KubectlVersion is the version that kubectl reported; empty when none was tested.
	KubectlVersion string `json:"kubectlVersion,omitempty"`
	// Features are the features of the cluster and the credentials.
	Features []FeatureStatus `json:"features"`
	// Preflight lists the findings before any behavior ran.
	Preflight []Finding `json:"preflight"`
}

// ClaimCatalog identifies a list of behaviors.
type ClaimCatalog struct {
	// Digest is the result of CatalogDigest.
	Digest string `json:"digest"`
	// Behaviors is the number of behaviors.
	Behaviors int `json:"behaviors"`
}

// ClaimSelection is the part of the catalog that a run selected.
type ClaimSelection struct {
	// Selected is the number of selected behaviors.
	Selected int `json:"selected"`
	// NotSelected are the other behaviors. None of them belongs to a claimed profile.
	NotSelected []ReasonedBehaviors `json:"notSelected,omitempty"`
}

// ReasonedBehaviors are behaviors with one reason why they have no result.
type ReasonedBehaviors struct {
	Reason string `json:"reason"`
	// Behaviors are their ids, sorted.
	Behaviors []string `json:"behaviors"`
}

// ProfileConclusion is the result of a profile.
type ProfileConclusion string

const (
	// ProfilePassed means that no core or extended behavior of the profile failed, and that every core behavior was tested which the version
	// of Kubernetes has.
	ProfilePassed ProfileConclusion = "passed"
	// ProfilePartial means that no core or extended behavior of the profile failed, and that core behaviors were skipped.
	ProfilePartial ProfileConclusion = "partial"
	// ProfileFailed means that a core or extended behavior of the profile failed, whether that was known or not.
	ProfileFailed ProfileConclusion = "failed"
)

// ProfileConclusions are all conclusions, the best first.
var ProfileConclusions = []ProfileConclusion{ProfilePassed, ProfilePartial, ProfileFailed}

// ProfileResult is the result of one profile.
type ProfileResult struct {
	Profile    Profile           `json:"profile"`
	Conclusion ProfileConclusion `json:"conclusion"`
	// Levels counts the results, one entry for each level.
	Levels []LevelCount `json:"levels"`
	// Passed are the ids of the behaviors that passed, sorted.
	Passed []string `json:"passed"`
	// Failed are the core and extended behaviors that failed.
	Failed []FailedBehavior `json:"failed,omitempty"`
	// Deviated are the observed behaviors that failed. They do not affect the conclusion.
	Deviated []FailedBehavior `json:"deviated,omitempty"`
	// Skipped are the behaviors that were skipped, by reason.
	Skipped []ReasonedBehaviors `json:"skipped,omitempty"`
	// Extended is what the implementation supports of what Kubernetes promises only where a feature is enabled.
	Extended ExtendedSupport `json:"extended"`
}

// LevelCount counts the results of one level in a profile.
type LevelCount struct {
	Level   Level `json:"level"`
	Passed  int   `json:"passed"`
	Failed  int   `json:"failed"`
	Skipped int   `json:"skipped"`
}

// FailedBehavior is a behavior that failed.
type FailedBehavior struct {
	ID string `json:"id"`
	// Message is what was expected and what happened.
	Message string `json:"message"`
}

// ExtendedSupport lists extended behaviors. A behavior counts as supported only if it passed, never because its feature is enabled.
type ExtendedSupport struct {
	// Supported are the ids of the extended behaviors that passed, sorted.
	Supported []string `json:"supported"`
	// Unsupported are those that were skipped, by reason.
	Unsupported []ReasonedBehaviors `json:"unsupported,omitempty"`
}

// ClaimEvidence contains the report of a claim.
type ClaimEvidence struct {
	// SHA256 is the SHA-256 of report.json, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Report is report.json, compressed with gzip.
	Report []byte `json:"report"`
}
