package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Concluded returns the report with what follows from its results: the counts, the verdicts and the causes. Every report is concluded where it
// is made, merged or read, and the formats write what they find in it.
func Concluded(r v1alpha1.Report) v1alpha1.Report {
	r.Clusters, r.Counts = slices.Clone(r.Clusters), v1alpha1.Count(r.Results())
	for i := range r.Clusters {
		r.Clusters[i].Counts = v1alpha1.Count(r.Clusters[i].Results)
	}
	r.Verdicts = []v1alpha1.Verdict{verdictOnClusters(r)}
	if kubectl, tested := verdictOnKubectl(r); tested {
		r.Verdicts = append(r.Verdicts, kubectl)
	}
	r.Causes = causesOf(r)
	return r
}

// verdictOnClusters returns the verdict on the clusters of a run. The order of precedence is: a failure, an error of the run, an interruption, a
// cluster on which nothing could be tested. Behaviors of kubectl do not count.
func verdictOnClusters(r v1alpha1.Report) v1alpha1.Verdict {
	verdict := verdictOf(clusterPart(r))
	if testsOnlyKubectl(r) {
		verdict = verdictOf(r)
		if _, tested := verdictOnKubectl(r); tested {
			verdict = v1alpha1.Verdict{Conclusion: v1alpha1.NotTested, Reason: "the selection of this run has only behaviors of kubectl"}
		}
	}
	verdict.Subject = v1alpha1.SubjectCluster
	return verdict
}

// verdictOnKubectl returns the verdict on kubectl. It is false when no behavior of kubectl ran.
func verdictOnKubectl(r v1alpha1.Report) (v1alpha1.Verdict, bool) {
	part := kubectlPart(r)
	if len(part.Clusters) == 0 {
		return v1alpha1.Verdict{}, false
	}
	verdict := verdictOf(part)
	verdict.Subject, verdict.Version = v1alpha1.SubjectKubectl, strings.Join(KubectlVersions(r), ", ")
	return verdict, true
}

// clusterPart returns the report without the behaviors of kubectl.
func clusterPart(r v1alpha1.Report) v1alpha1.Report {
	return partOf(r, func(result v1alpha1.Result) bool { return !result.IsKubectl() })
}

// kubectlPart returns the report of the behaviors of kubectl, on the clusters on which any of them ran.
func kubectlPart(r v1alpha1.Report) v1alpha1.Report {
	part := partOf(r, func(result v1alpha1.Result) bool { return result.IsKubectl() })
	part.Clusters = slices.DeleteFunc(part.Clusters, func(cluster v1alpha1.Cluster) bool {
		return cluster.Problem != "" || !slices.ContainsFunc(cluster.Results, func(result v1alpha1.Result) bool {
			return result.Outcome != v1alpha1.Skipped && result.Outcome != v1alpha1.Filtered
		})
	})
	return part
}

// partOf returns the report with some of its results.
func partOf(r v1alpha1.Report, wanted func(v1alpha1.Result) bool) v1alpha1.Report {
	r.Clusters = slices.Clone(r.Clusters)
	for i, cluster := range r.Clusters {
		var results []v1alpha1.Result
		for _, result := range cluster.Results {
			if wanted(result) {
				results = append(results, result)
			}
		}
		r.Clusters[i].Results, r.Clusters[i].Counts = results, v1alpha1.Count(results)
	}
	return r
}

// testsOnlyKubectl reports whether only behaviors of kubectl are selected.
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

func verdictOf(r v1alpha1.Report) v1alpha1.Verdict {
	count := v1alpha1.Count(r.Results())
	failed := count[v1alpha1.Failed]
	if r.Strict {
		failed += count[v1alpha1.Deviated]
	}
	problems, outdated, untested := problemsOf(r), outdatedOf(r), untestedOf(r)
	switch {
	case failed > 0:
		reason := append([]string{Behaviors(failed) + " failed"}, outdated...)
		return verdict(v1alpha1.Nonconformant, append(reason, problems...)...)
	case len(outdated) > 0:
		return verdict(v1alpha1.KnownFailuresOutdated, append(outdated, problems...)...)
	case len(problems) > 0:
		return verdict(v1alpha1.RunError, problems...)
	case r.Interrupted || count[v1alpha1.Interrupted] > 0:
		if count[v1alpha1.Interrupted] == 0 {
			return verdict(v1alpha1.Incomplete, "the run was interrupted")
		}
		return verdict(v1alpha1.Incomplete, fmt.Sprintf("the run was interrupted before %s ended", Behaviors(count[v1alpha1.Interrupted])))
	case len(untested) > 0:
		return verdict(v1alpha1.NothingTested, untested...)
	case count[v1alpha1.Known] > 0:
		return v1alpha1.Verdict{Conclusion: v1alpha1.ConformantExceptKnown, Scope: scopeOf(r)}
	}
	return v1alpha1.Verdict{Conclusion: v1alpha1.Conformant, Scope: scopeOf(r)}
}

func verdict(conclusion v1alpha1.Conclusion, reasons ...string) v1alpha1.Verdict {
	return v1alpha1.Verdict{Conclusion: conclusion, Reason: strings.Join(reasons, "; ")}
}

// scopeOf returns the selection of a run; it is empty if the run selected everything.
func scopeOf(r v1alpha1.Report) string {
	type part struct{ selected, all map[string]bool }
	whole, suites := part{map[string]bool{}, map[string]bool{}}, map[string]part{}
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if suites[result.Suite()].all == nil {
				suites[result.Suite()] = part{map[string]bool{}, map[string]bool{}}
			}
			for _, of := range []part{whole, suites[result.Suite()]} {
				of.all[result.ID] = true
				if result.Outcome != v1alpha1.Filtered {
					of.selected[result.ID] = true
				}
			}
		}
	}
	if len(whole.selected) == len(whole.all) {
		return ""
	}
	complete := 0
	for _, suite := range suites {
		switch len(suite.selected) {
		case 0:
		case len(suite.all):
			complete++
		default:
			return fmt.Sprintf("%d of %d behaviors selected", len(whole.selected), len(whole.all))
		}
	}
	return fmt.Sprintf("in %d of %d suites", complete, len(suites))
}

// maxOutdated is the number of outdated known failures that a verdict names.
const maxOutdated = 3

// outdatedOf names the known failures that are outdated; it is empty if there are none.
func outdatedOf(r v1alpha1.Report) []string {
	var ids []string
	for _, cluster := range r.Clusters {
		for _, result := range cluster.Results {
			if result.Outcome == v1alpha1.Outdated && !slices.Contains(ids, result.ID) {
				ids = append(ids, result.ID)
			}
		}
	}
	named, what := strings.Join(ids[:min(len(ids), maxOutdated)], ", "), "1 known failure is"
	switch {
	case len(ids) == 0:
		return nil
	case len(ids) > 1:
		what = fmt.Sprintf("%d known failures are", len(ids))
	}
	if more := len(ids) - maxOutdated; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []string{what + " outdated: " + named}
}

// problemsOf describes the clusters that could not be tested, each cause once, and the number of errored behaviors on the others.
func problemsOf(r v1alpha1.Report) []string {
	var causes []string
	unusable, errors, where := map[string][]v1alpha1.Cluster{}, 0, []v1alpha1.Cluster(nil)
	for _, cluster := range r.Clusters {
		switch errored := cluster.Counts[v1alpha1.Errored]; {
		case cluster.Problem != "":
			if unusable[cluster.Problem] == nil {
				causes = append(causes, cluster.Problem)
			}
			unusable[cluster.Problem] = append(unusable[cluster.Problem], cluster)
		case errored > 0:
			errors += errored
			where = append(where, cluster)
		}
	}
	var problems []string
	for _, cause := range causes {
		problem, errored := fmt.Sprintf("%s: %s", clustersNamed(unusable[cause]), cause), 0
		for _, cluster := range unusable[cause] {
			errored += cluster.Counts[v1alpha1.Errored]
		}
		if errored > 0 {
			problem += fmt.Sprintf(" (%s errored)", Behaviors(errored))
		}
		problems = append(problems, problem)
	}
	if errors > 0 {
		problems = append(problems, fmt.Sprintf("%s errored on %s", Behaviors(errors), clustersNamed(where)))
	}
	return problems
}

// maxClusters is the number of clusters that a verdict names.
const maxClusters = 3

func clustersNamed(clusters []v1alpha1.Cluster) string {
	names := make([]string, len(clusters))
	for i, cluster := range clusters {
		names[i] = fmt.Sprintf("%q", cluster.Name)
	}
	switch more := len(names) - maxClusters; {
	case len(names) == 1:
		return "cluster " + names[0]
	case more > 0:
		return fmt.Sprintf("clusters %s and %d more", strings.Join(names[:maxClusters], ", "), more)
	}
	return "clusters " + strings.Join(names, ", ")
}

// HasRunErrors reports whether behaviors errored on a cluster that could be tested.
func HasRunErrors(r v1alpha1.Report) bool {
	return slices.ContainsFunc(r.Clusters, func(cluster v1alpha1.Cluster) bool {
		return cluster.Problem == "" && cluster.Counts[v1alpha1.Errored] > 0
	})
}

// untestedOf describes the clusters on which no behavior was tested, with the reasons; empty when there is none.
func untestedOf(r v1alpha1.Report) []string {
	if len(r.Clusters) == 0 {
		return []string{"no cluster specified"}
	}
	var untested []string
	for _, cluster := range r.Clusters {
		if !slices.ContainsFunc(cluster.Results, WasTested) {
			untested = append(untested, fmt.Sprintf("cluster %q: no behavior ran%s", cluster.Name, mainReasons(cluster)))
		}
	}
	return untested
}

// mainReasons returns the most frequent reasons why selected behaviors of the cluster were not tested.
func mainReasons(cluster v1alpha1.Cluster) string {
	groups := ByReason(cluster.Results, v1alpha1.Skipped, v1alpha1.Interrupted)
	var reasons []string
	for _, group := range groups[:min(len(groups), 3)] {
		reasons = append(reasons, fmt.Sprintf("%d: %s", len(group.IDs), group.Reason))
	}
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

// Behaviors formats a number of behaviors.
func Behaviors(n int) string {
	if n == 1 {
		return "1 behavior"
	}
	return fmt.Sprintf("%d behaviors", n)
}
