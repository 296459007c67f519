package v1alpha1

import "time"

const (
	// APIVersion is the version of report.json's format.
	APIVersion = "deletion-conformance.github.io/v1alpha1"
	// Kind is the kind of report.json.
	Kind = "DeletionConformanceReport"
)

// Report is one run: some behaviors, tested on some clusters.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// RunID is the id with which all objects of the run were labeled.
	RunID string `json:"runID"`
	// Runner is the version of the runner.
	Runner string    `json:"runner"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	// TraceID is the W3C trace id that the run's requests carried, in 32 hexadecimal digits; empty when the run was not traced.
	TraceID string `json:"traceID,omitempty"`
	// Strict is set when deviations of observed behaviors fail the run.
	Strict bool `json:"strict,omitempty"`
	// Interrupted is set when the run was stopped before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Shard is the part of the selection that the run tested, "2/5"; empty for all of it.
	Shard string `json:"shard,omitempty"`
	// Shards are the parts that were merged into this report: "1/2" and "2/2"; empty for a report that was not merged of shards.
	Shards   []string  `json:"shards,omitempty"`
	Clusters []Cluster `json:"clusters"`
	// Verdicts are the conclusions of the run: first on the clusters, then on kubectl if it was tested. They follow from the results, as do
	// the counts and the causes.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Counts are the numbers of results on all clusters.
	Counts Counts `json:"counts,omitempty"`
	// Causes are the causes of failures, deviations and errors: first those that explain most failures.
	Causes []Cause `json:"causes,omitempty"`
	// LeftOut are the resources that a run of all resources has left out.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Cause is what several behaviors probably failed, deviated or errored for.
type Cause struct {
	// Cause is that of their failures or, where none was recognized, what their messages have in common.
	Cause string `json:"cause"`
	// Failed, Deviated and Errored are the numbers of their results with these outcomes. Known failures are not counted, outdated ones are failed.
	Failed   int `json:"failed,omitempty"`
	Deviated int `json:"deviated,omitempty"`
	Errored  int `json:"errored,omitempty"`
	// Behaviors are their ids, sorted.
	Behaviors []string `json:"behaviors"`
}

// LeftOut is a resource of a cluster that was not tested, with the reason.
type LeftOut struct {
	Cluster  string `json:"cluster"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Cluster contains the results of one cluster.
type Cluster struct {
	// Name is the name of the kubeconfig context, or of the provider that created the cluster.
	Name string `json:"name"`
	// Resource is the name of the resource that was tested instead of ConfigMaps; empty for ConfigMaps. The name contains it, too.
	Resource string `json:"resource,omitempty"`
	// Problem is why the cluster could not be tested at all; empty when it could.
	Problem string `json:"problem,omitempty"`
	// Warning is a remark about the resource under test: why a run of all resources would exclude it.
	Warning string `json:"warning,omitempty"`
	// LeftBehind lists what may remain on the cluster, and how to remove it; empty when the run deleted everything, or the cluster is gone.
	LeftBehind string `json:"leftBehind,omitempty"`
	// Kept lists the objects of failed behaviors that the run kept on request, and how to remove them; empty for none.
	Kept          string `json:"kept,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// NodeRuntime is the container runtime that the nodes report; empty without nodes.
	NodeRuntime string `json:"nodeRuntime,omitempty"`
	// KubectlVersion is the version of the tested kubectl; empty when there was none, or none was required.
	KubectlVersion string `json:"kubectlVersion,omitempty"`
	// Features are the features of the cluster and the credentials, one entry for each.
	Features []FeatureStatus `json:"features"`
	// Preflight lists the findings before any behavior ran, one or more entries for each check.
	Preflight []Finding `json:"preflight,omitempty"`
	// Counts are the numbers of its results.
	Counts Counts `json:"counts,omitempty"`
	// Figures are how long the cluster took to delete objects. They follow from the timelines.
	Figures []Figure `json:"figures,omitempty"`
	// Results contains one entry for each behavior of the catalog, sorted by id, whether it ran or not.
	Results []Result `json:"results"`
}

// FeatureStatus is one feature, and whether it is available.
type FeatureStatus struct {
	Feature Feature `json:"feature"`
	Present bool    `json:"present"`
	// Reason is why it is not available.
	Reason string `json:"reason,omitempty"`
}

// Outcome is the outcome of a behavior.
type Outcome string

const (
	// Passed means that the behavior passed.
	Passed Outcome = "passed"
	// Failed means that the behavior failed.
	Failed Outcome = "failed"
	// Deviated means that an observed behavior failed, and that the run is not strict.
	Deviated Outcome = "deviated"
	// Known means that it failed, or deviated, and is in the list of known failures of the run.
	Known Outcome = "known"
	// Outdated means that an entry in the list of known failures no longer applies: the behavior passed, or deviated after the date of the
	// entry. A failure after the date is Failed.
	Outdated Outcome = "outdated"
	// Skipped means that the cluster or the credentials do not permit the test; see the reason.
	Skipped Outcome = "skipped"
	// Filtered means that the behavior was not selected.
	Filtered Outcome = "filtered"
	// Errored means that it could not be tested because of an error of the run (connection lost, worker died).
	Errored Outcome = "errored"
	// Interrupted means that the run was stopped before it ended.
	Interrupted Outcome = "interrupted"
)

// Outcomes are all outcomes, in the order of reports.
var Outcomes = []Outcome{Passed, Failed, Outdated, Known, Deviated, Errored, Interrupted, Skipped, Filtered}

// Result is one behavior on one cluster.
type Result struct {
	Behavior
	Outcome Outcome `json:"outcome"`
	// Reason is why a behavior was skipped, filtered, errored or interrupted, or the reason in the list of known failures.
	Reason string `json:"reason,omitempty"`
	// Failure is what was expected and what happened.
	Failure *Failure `json:"failure,omitempty"`
	// Start and Seconds are when it ran and how long it took; zero when it did not run.
	Start    time.Time `json:"start,omitzero"`
	Seconds  float64   `json:"seconds,omitempty"`
	Timeline Timeline  `json:"timeline,omitzero"`
	// Tries are earlier attempts, the oldest first, that ended with a connection error. Failures are never retried, so no attempt has a
	// verdict.
	Tries []Try `json:"tries,omitempty"`
}

// Try is an attempt in which a behavior could not be tested.
type Try struct {
	// Reason is why it could not be tested.
	Reason string `json:"reason"`
	// Start and Seconds are when it ran and how long it took.
	Start   time.Time `json:"start,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
}

// Failure is the failure of a behavior.
type Failure struct {
	Message string `json:"message"`
	// Cause is what the API server did wrong, if the timeline shows one of the faults that many behaviors meet. It names no objects, so that it
	// is the same in all of them.
	Cause string `json:"cause,omitempty"`
	// Location is file:line of the assertion, relative to the repository's root.
	Location string `json:"location,omitempty"`
	// Explanation describes for each remaining object why it still exists.
	Explanation []string `json:"explanation,omitempty"`
}
