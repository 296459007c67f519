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
	// RunID is the id that everything the run made was labelled with.
	RunID string `json:"runID"`
	// Runner is the version of the runner.
	Runner string    `json:"runner"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	// Strict says that deviations from observed behaviors fail the run.
	Strict bool `json:"strict,omitempty"`
	// Interrupted says that the run was stopped before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Shard is the part of the selection that the run was to test, "2/5"; empty when it was all of it.
	Shard    string    `json:"shard,omitempty"`
	Clusters []Cluster `json:"clusters"`
	// Verdicts are what the run concludes: of the clusters first, then of kubectl where it was tested. They are computed from the
	// results whenever the report is written.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// LeftOut are the resources that a run which was to test all has left out.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Verdict is what a run concludes of a subject.
type Verdict struct {
	// Subject is what was tested: "cluster", for all clusters of the run, or "kubectl".
	Subject string `json:"subject"`
	// Version is that of kubectl; empty for clusters, which have their own.
	Version string `json:"version,omitempty"`
	// Conclusion is one of: conformant, not conformant, run error, interrupted, nothing tested, not tested.
	Conclusion string `json:"conclusion"`
	// Reason says why, in one sentence.
	Reason string `json:"reason"`
}

const (
	// SubjectCluster is the subject of a verdict about clusters.
	SubjectCluster = "cluster"
	// SubjectKubectl is the subject of a verdict about kubectl.
	SubjectKubectl = "kubectl"
)

// LeftOut is a resource of a cluster that was not tested, and why.
type LeftOut struct {
	Cluster  string `json:"cluster"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Cluster is what one cluster did.
type Cluster struct {
	// Name is the name of the kubeconfig context, or of the provider that made the cluster.
	Name string `json:"name"`
	// Resource is what was tested in the place of ConfigMaps, as it was named; empty where those were. The name holds it, too.
	Resource string `json:"resource,omitempty"`
	// Problem says why the cluster could not be tested at all; empty when it could.
	Problem string `json:"problem,omitempty"`
	// Warning says what a reader of the results should know of what was tested: why a resource that was named is none of
	// those that are tested where all are.
	Warning string `json:"warning,omitempty"`
	// LeftBehind says what of the run may still be on the cluster, and how to remove it; empty when the run removed all it
	// made, or the cluster is gone.
	LeftBehind    string `json:"leftBehind,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// NodeRuntime is the container runtime of the nodes, as they report it; empty without nodes.
	NodeRuntime string `json:"nodeRuntime,omitempty"`
	// KubectlVersion is the version of the kubectl that was run; empty where there was none, or none was needed.
	KubectlVersion string `json:"kubectlVersion,omitempty"`
	// Capabilities say what the cluster and the credentials offer, one entry a need.
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Preflight lists what was found about the cluster before any behavior ran, one entry a check.
	Preflight []Finding `json:"preflight,omitempty"`
	// Figures say how long the cluster took to delete things. They are read off the timelines when a report is written.
	Figures []Figure `json:"figures,omitempty"`
	// Results hold one entry a behavior of the catalogue, sorted by id, whether it ran or not.
	Results []Result `json:"results"`
}

// Capability is one need, and whether it was met.
type Capability struct {
	Feature Feature `json:"need"`
	Present bool    `json:"present"`
	// Reason says why it is absent.
	Reason string `json:"reason,omitempty"`
}

// Outcome is how a behavior ended.
type Outcome string

const (
	// Passed means that the behavior held.
	Passed Outcome = "passed"
	// Failed means that it did not.
	Failed Outcome = "failed"
	// Deviated means that an observed behavior failed, and that the run is not strict.
	Deviated Outcome = "deviated"
	// Skipped means that this cluster or these credentials do not allow to test it; the reason is said.
	Skipped Outcome = "skipped"
	// Filtered means that the selection of this run leaves it out.
	Filtered Outcome = "filtered"
	// Errored means that it could not be tested because the run itself failed (connection lost, worker died).
	Errored Outcome = "errored"
	// Interrupted means that the run was stopped before it ended.
	Interrupted Outcome = "interrupted"
)

// Outcomes are all outcomes, in the order in which they are counted out.
var Outcomes = []Outcome{Passed, Failed, Deviated, Errored, Interrupted, Skipped, Filtered}

// Result is one behavior on one cluster.
type Result struct {
	Behavior
	Outcome Outcome `json:"outcome"`
	// Reason says why a behavior was skipped, filtered, errored or interrupted.
	Reason string `json:"reason,omitempty"`
	// Failure says what was expected and what happened.
	Failure *Failure `json:"failure,omitempty"`
	// Start and Seconds say when it ran and how long it took; zero when it did not run.
	Start    time.Time `json:"start,omitzero"`
	Seconds  float64   `json:"seconds,omitempty"`
	Timeline Timeline  `json:"timeline,omitzero"`
	// Tries are those before, the oldest first, where the way to the cluster failed and it was retried from the start. What
	// failed has failed: no verdict is among them.
	Tries []Try `json:"tries,omitempty"`
}

// Try is one time that a behavior could not be tested, before it was retried.
type Try struct {
	// Reason says why it could not be tested.
	Reason string `json:"reason"`
	// Start and Seconds say when it ran and how long it took.
	Start   time.Time `json:"start,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
}

// Failure is what a failed behavior says.
type Failure struct {
	Message string `json:"message"`
	// Location is file:line of the assertion, relative to the repository's root.
	Location string `json:"location,omitempty"`
	// Explanation says of each object that is still there why it is.
	Explanation []string `json:"explanation,omitempty"`
}

// Count says how many results had each outcome.
func (c Cluster) Count() map[Outcome]int {
	count := map[Outcome]int{}
	for _, result := range c.Results {
		count[result.Outcome]++
	}
	return count
}

// Count says how many results had each outcome, over all clusters.
func (r Report) Count() map[Outcome]int {
	count := map[Outcome]int{}
	for _, cluster := range r.Clusters {
		for outcome, n := range cluster.Count() {
			count[outcome] += n
		}
	}
	return count
}
