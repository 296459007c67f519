package v1alpha1

import "strings"

// Verdict is the conclusion of a run on a subject.
type Verdict struct {
	// Subject is "cluster", for all clusters of the run, or "kubectl".
	Subject string `json:"subject"`
	// Version is the version of kubectl; empty for clusters, which have their own.
	Version    string     `json:"version,omitempty"`
	Conclusion Conclusion `json:"conclusion"`
	// Scope is what was selected, where a conformant run did not select all: "in 2 of 9 suites", or "12 of 382 behaviors selected".
	Scope string `json:"scope,omitempty"`
	// Reason is the reason, in one sentence; empty where the counts are all there is to report.
	Reason string `json:"reason,omitempty"`
}

const (
	// SubjectCluster is the subject of a verdict about clusters.
	SubjectCluster = "cluster"
	// SubjectKubectl is the subject of a verdict about kubectl.
	SubjectKubectl = "kubectl"
)

// Title names the subject with its version.
func (v Verdict) Title() string { return strings.TrimSpace(v.Subject + " " + v.Version) }

// String is the verdict in one line. It names kubectl, but not the clusters.
func (v Verdict) String() string {
	line := string(v.Conclusion)
	if v.Subject == SubjectKubectl {
		line = v.Title() + ": " + line
	}
	return strings.TrimSuffix(line+": "+v.Reason, ": ")
}

// Conclusion is the result of a run for its subject: its clusters, or kubectl.
type Conclusion string

const (
	// Conformant means that at least one behavior passed on every cluster, and that none failed.
	Conformant Conclusion = "conformant"
	// ConformantExceptKnown means that something was tested on every cluster, and that nothing failed except known failures.
	ConformantExceptKnown Conclusion = "conformant except known failures"
	// Nonconformant means that a behavior failed, or deviated in a strict run.
	Nonconformant Conclusion = "not conformant"
	// KnownFailuresOutdated means that nothing failed, but that a known failure passed or that its date is over.
	KnownFailuresOutdated Conclusion = "known failures outdated"
	// RunError means that nothing failed, but a cluster or a behavior could not be tested because of an error of the run.
	RunError Conclusion = "run error"
	// Incomplete means that nothing failed, but that the run was interrupted.
	Incomplete Conclusion = "interrupted"
	// NothingTested means that no behavior was tested on some cluster, which must not count as a pass.
	NothingTested Conclusion = "nothing tested"
	// NotTested means that only behaviors of kubectl were selected, so there is no result for a cluster.
	NotTested Conclusion = "not tested"
)

// Conclusions are all conclusions.
var Conclusions = []Conclusion{Conformant, ConformantExceptKnown, Nonconformant, KnownFailuresOutdated, RunError, Incomplete, NothingTested, NotTested}

// Passes reports whether a run with this conclusion passes.
func (c Conclusion) Passes() bool {
	return c == Conformant || c == ConformantExceptKnown || c == NotTested
}

// Fails reports whether a run with this conclusion fails because of what it tested.
func (c Conclusion) Fails() bool { return c == Nonconformant || c == KnownFailuresOutdated }

// Verdict returns the verdict on a subject. It is false if the subject was not tested; there always is one on clusters.
func (r Report) Verdict(subject string) (Verdict, bool) {
	for _, verdict := range r.Verdicts {
		if verdict.Subject == subject {
			return verdict, true
		}
	}
	return Verdict{}, false
}

// Results returns the results on all clusters.
func (r Report) Results() []Result {
	var results []Result
	for _, cluster := range r.Clusters {
		results = append(results, cluster.Results...)
	}
	return results
}

// Counts are numbers of results by outcome. Outcomes without a result are left out.
type Counts map[Outcome]int

// Count counts results by outcome.
func Count(results []Result) Counts {
	counts := Counts{}
	for _, result := range results {
		counts[result.Outcome]++
	}
	return counts
}
