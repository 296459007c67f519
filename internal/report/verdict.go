package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Conclusion is what a run means for what it tested: its clusters, or kubectl.
type Conclusion string

const (
	// Conformant means that something was tested on every cluster, and that nothing failed.
	Conformant Conclusion = "conformant"
	// Nonconformant means that a behavior failed, or deviated in a strict run.
	Nonconformant Conclusion = "not conformant"
	// RunError means that nothing failed, but a cluster or a behavior could not be tested because the run itself went
	// wrong.
	RunError Conclusion = "run error"
	// Incomplete means that nothing failed, but that the run was stopped before its end.
	Incomplete Conclusion = "interrupted"
	// NothingTested means that on some cluster no behavior was tested, which must never look like a pass.
	NothingTested Conclusion = "nothing tested"
	// NotTested means that the run had only behaviors of kubectl to test, so that it says nothing about a cluster.
	NotTested Conclusion = "not tested"
)

// Verdict is the conclusion of a run and one sentence that says why, fit to be shown.
type Verdict struct {
	Conclusion Conclusion
	Reason     string
}

// VerdictOf concludes what the run shows about its clusters. What is worst comes first: a failure outweighs an error of the run,
// that an interruption, and that a cluster of which nothing could be tested. Behaviors of kubectl do not count.
func VerdictOf(r v1alpha1.Report) Verdict {
	verdict := verdictOf(clusterPart(r))
	if testsOnlyKubectl(r) {
		verdict = verdictOf(r)
		if _, tested := KubectlVerdictOf(r); tested {
			verdict = Verdict{NotTested, "the selection of this run has only behaviors of kubectl"}
		}
	}
	verdict.Reason = Visible(verdict.Reason)
	return verdict
}

// KubectlVerdictOf concludes what the run shows about kubectl. It is false where no behavior of kubectl ran.
func KubectlVerdictOf(r v1alpha1.Report) (Verdict, bool) {
	part := kubectlPart(r)
	if len(part.Clusters) == 0 {
		return Verdict{}, false
	}
	verdict := verdictOf(part)
	verdict.Reason = Visible(verdict.Reason)
	return verdict, true
}

// KubectlTitle names the kubectl that was tested, with its versions.
func KubectlTitle(r v1alpha1.Report) string {
	return strings.Join(append([]string{v1alpha1.SubjectKubectl}, visible(KubectlVersions(r))...), " ")
}

func visible(texts []string) []string {
	shown := make([]string, len(texts))
	for i, text := range texts {
		shown[i] = Visible(text)
	}
	return shown
}

// Concluded is the report with its verdicts.
func Concluded(r v1alpha1.Report) v1alpha1.Report {
	cluster := VerdictOf(r)
	r.Verdicts = []v1alpha1.Verdict{{
		Subject: v1alpha1.SubjectCluster, Conclusion: string(cluster.Conclusion), Reason: cluster.Reason,
	}}
	if kubectl, tested := KubectlVerdictOf(r); tested {
		r.Verdicts = append(r.Verdicts, v1alpha1.Verdict{
			Subject: v1alpha1.SubjectKubectl, Version: strings.Join(KubectlVersions(r), ", "),
			Conclusion: string(kubectl.Conclusion), Reason: kubectl.Reason,
		})
	}
	return r
}

// clusterPart is the report without the behaviors of kubectl.
func clusterPart(r v1alpha1.Report) v1alpha1.Report {
	return partOf(r, func(result v1alpha1.Result) bool { return !result.IsKubectl() })
}

// kubectlPart is the report of the behaviors of kubectl, on the clusters on which any of them ran.
func kubectlPart(r v1alpha1.Report) v1alpha1.Report {
	part := partOf(r, func(result v1alpha1.Result) bool { return result.IsKubectl() })
	part.Clusters = slices.DeleteFunc(part.Clusters, func(cluster v1alpha1.Cluster) bool {
		return cluster.Problem != "" || !slices.ContainsFunc(cluster.Results, func(result v1alpha1.Result) bool {
			return result.Outcome != v1alpha1.Skipped && result.Outcome != v1alpha1.Filtered
		})
	})
	return part
}

// partOf is the report with some of its results.
func partOf(r v1alpha1.Report, wanted func(v1alpha1.Result) bool) v1alpha1.Report {
	r.Clusters = slices.Clone(r.Clusters)
	for i, cluster := range r.Clusters {
		var results []v1alpha1.Result
		for _, result := range cluster.Results {
			if wanted(result) {
				results = append(results, result)
			}
		}
		r.Clusters[i].Results = results
	}
	return r
}

// testsOnlyKubectl reports whether the selection of the run has behaviors of kubectl and no others.
func testsOnlyKubectl(r v1alpha1.Report) bool {
	chosenAny := false
	for _, cluster := range r.Clusters {
		if cluster.Problem != "" {
			return false
		}
		for _, result := range cluster.Results {
			switch chosen := result.Outcome != v1alpha1.Filtered; {
			case chosen && !result.IsKubectl():
				return false
			case chosen:
				chosenAny = true
			}
		}
	}
	return chosenAny
}

func verdictOf(r v1alpha1.Report) Verdict {
	count := r.Count()
	failed := count[v1alpha1.Failed]
	if r.Strict {
		failed += count[v1alpha1.Deviated]
	}
	problems := problemsOf(r)
	switch untested := untestedOf(r); {
	case failed > 0:
		reason := fmt.Sprintf("%s failed", Behaviors(failed))
		if len(problems) > 0 {
			reason += "; " + strings.Join(problems, "; ")
		}
		return Verdict{Nonconformant, reason}
	case len(problems) > 0:
		return Verdict{RunError, strings.Join(problems, "; ")}
	case r.Interrupted || count[v1alpha1.Interrupted] > 0:
		return Verdict{Incomplete, fmt.Sprintf("the run was interrupted before %s ended", Behaviors(count[v1alpha1.Interrupted]))}
	case untested != "":
		return Verdict{NothingTested, untested}
	default:
		return Verdict{Conformant, conformity(count)}
	}
}

// conformity says what a conformant run has shown.
func conformity(count map[v1alpha1.Outcome]int) string {
	reason := Behaviors(count[v1alpha1.Passed]) + " passed"
	if count[v1alpha1.Deviated] > 0 {
		reason += fmt.Sprintf(", %d deviated from what upstream is observed to do", count[v1alpha1.Deviated])
	}
	if count[v1alpha1.Skipped] > 0 {
		reason += fmt.Sprintf(", %d skipped", count[v1alpha1.Skipped])
	}
	if count[v1alpha1.Filtered] > 0 {
		reason += fmt.Sprintf(", %d not selected", count[v1alpha1.Filtered])
	}
	return reason
}

// problemsOf says which clusters could not be tested, and how many behaviors on the others could not because of an error.
func problemsOf(r v1alpha1.Report) []string {
	var problems, where []string
	errors := 0
	for _, cluster := range r.Clusters {
		if cluster.Problem != "" {
			problems = append(problems, fmt.Sprintf("cluster %q: %s", cluster.Name, cluster.Problem))
		} else if errored := cluster.Count()[v1alpha1.Errored]; errored > 0 {
			errors += errored
			where = append(where, fmt.Sprintf("cluster %q", cluster.Name))
		}
	}
	if errors > 0 {
		on := where[0]
		if len(where) > 1 {
			on = fmt.Sprintf("%d clusters", len(where))
		}
		problems = append(problems, fmt.Sprintf("%s errored on %s", Behaviors(errors), on))
	}
	return problems
}

// HasRunErrors reports whether behaviors errored on a cluster that could be tested.
func HasRunErrors(r v1alpha1.Report) bool {
	return slices.ContainsFunc(r.Clusters, func(cluster v1alpha1.Cluster) bool {
		return cluster.Problem == "" && cluster.Count()[v1alpha1.Errored] > 0
	})
}

// untestedOf says which clusters had no behavior tested, and why; empty when there is none.
func untestedOf(r v1alpha1.Report) string {
	if len(r.Clusters) == 0 {
		return "no cluster specified"
	}
	var untested []string
	for _, cluster := range r.Clusters {
		count := cluster.Count()
		if count[v1alpha1.Passed]+count[v1alpha1.Failed]+count[v1alpha1.Deviated] == 0 {
			untested = append(untested, fmt.Sprintf("cluster %q: no behavior ran%s", cluster.Name, mainReasons(cluster)))
		}
	}
	return strings.Join(untested, "; ")
}

// mainReasons are the most frequent reasons for which behaviors of the cluster were not tested.
func mainReasons(cluster v1alpha1.Cluster) string {
	groups := UntestedByReason(cluster.Results)
	var reasons []string
	for _, group := range groups[:min(len(groups), 3)] {
		reasons = append(reasons, fmt.Sprintf("%d: %s", len(group.IDs), group.Reason))
	}
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// Behaviors counts behaviors in words.
func Behaviors(n int) string {
	if n == 1 {
		return "1 behavior"
	}
	return fmt.Sprintf("%d behaviors", n)
}
