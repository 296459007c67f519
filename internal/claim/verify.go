package claim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
)

// Problem is a reason why a claim does not hold.
type Problem struct {
	// Where is the part of the claim or of its report: an id, or the name of a field.
	Where string `json:"where"`
	// What is the contradiction.
	What string `json:"what"`
}

// String is the problem in one line.
func (p Problem) String() string { return p.Where + ": " + p.What }

const (
	// maxListed is how many ids a problem names.
	maxListed = 5
	// problemLength limits the texts of a problem, in characters.
	problemLength = 400
	// maxProblems is how many problems of a claim are kept.
	maxProblems = 100
)

// Verification is a claim with what was found about it.
type Verification struct {
	Claim v1alpha1.ConformanceReport
	// Problems are the reasons why the claim does not follow from its report.
	Problems []Problem
	// Catalog is where the catalog of the report differs from that of this runner.
	Catalog []Problem
	// Cluster contains the results.
	Cluster v1alpha1.Cluster
}

// IsModified reports whether the runner of a claim contains uncommitted changes, so that no one else has it.
func IsModified(of v1alpha1.ConformanceReport) bool { return strings.HasSuffix(of.Runner, "dirty") }

// verification is the verification of one claim.
type verification struct {
	Verification
	report   v1alpha1.Report
	profiles []v1alpha1.Profile
}

func (v *verification) found(where, what string, values ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, problem(where, fmt.Sprintf(what, values...)))
	}
}

// problem returns a problem whose texts are one line each.
func problem(where, what string) Problem {
	return Problem{report.OneLine(where, problemLength), report.OneLine(what, problemLength)}
}

// Verify verifies the content of a file. It fails if that is not a claim. Nothing is run: the schema is checked, the report of the claim is
// compared with a catalog, and the claim is derived from it again. Whether the report is true cannot be seen.
func Verify(content []byte, catalog []v1alpha1.Behavior) (Verification, error) {
	v := &verification{}
	if len(content) > maxClaim {
		return Verification{}, fmt.Errorf("the claim is larger than %d MiB", maxClaim>>20)
	}
	violations, err := decode(content, "claim", v1alpha1.ClaimKind, &v.Claim)
	if err != nil {
		return Verification{}, err
	}
	for _, violation := range violations {
		v.found("claim", "%v", violation)
	}
	v.verify(catalog)
	return v.Verification, nil
}

func (v *verification) verify(catalog []v1alpha1.Behavior) {
	if err := checkImplementation(v.Claim.Implementation); err != nil {
		v.found("implementation", "%v", err)
	}
	whole, violations, err := open(v.Claim.Evidence)
	if err != nil {
		v.found("evidence", "%v", err)
		return
	}
	for _, violation := range violations {
		v.found("evidence", "%v", violation)
	}
	v.report = whole
	if v.Cluster, err = clusterOf(whole, v.Claim.Environment.Cluster); err != nil {
		v.found("environment.cluster", "%v", err)
		return
	}
	v.checkProfiles()
	v.checkCatalog(catalog)
	v.checkRun()
	v.checkResults()
	v.checkSelection()
	v.checkDerived()
}

// checkProfiles checks which profiles are claimed.
func (v *verification) checkProfiles() {
	if len(v.Claim.Profiles) == 0 {
		v.found("profiles", "the claim has none")
	}
	for _, result := range v.Claim.Profiles {
		switch {
		case !slices.Contains(v1alpha1.Profiles, result.Profile):
			v.found("profiles", "unknown profile %q", result.Profile)
		case slices.Contains(v.profiles, result.Profile):
			v.found("profiles", "%s is duplicate", result.Profile)
		default:
			v.profiles = append(v.profiles, result.Profile)
		}
	}
}

// SameBehavior reports whether a claim and this runner mean the same behavior of a cluster by an id. Only of a resource under test it matters
// whether the behavior applies to every resource.
func SameBehavior(claimed, known v1alpha1.Behavior, of v1alpha1.Cluster) bool {
	digest := func(behavior v1alpha1.Behavior) string {
		return v1alpha1.CatalogDigest([]v1alpha1.Behavior{behavior})
	}
	return digest(claimed) == digest(known) && claimed.Slow == known.Slow && claimed.Disruptive == known.Disruptive &&
		(of.Resource == "" || claimed.AnyResource == known.AnyResource)
}

// checkCatalog compares the behaviors of the report with those of this runner.
func (v *verification) checkCatalog(catalog []v1alpha1.Behavior) {
	reported := map[string]v1alpha1.Behavior{}
	for _, behavior := range behaviorsOf(v.Cluster) {
		reported[behavior.ID] = behavior
	}
	var missing, changed []string
	for _, behavior := range catalog {
		other, ok := reported[behavior.ID]
		delete(reported, behavior.ID)
		switch {
		case !ok:
			missing = append(missing, behavior.ID)
		case !SameBehavior(other, behavior, v.Cluster):
			changed = append(changed, behavior.ID)
		}
	}
	for _, difference := range []struct {
		what string
		ids  []string
	}{
		{"the report does not contain %s", missing},
		{"the report describes %s in another way", changed},
		{"this runner does not know %s", slices.Sorted(maps.Keys(reported))},
	} {
		if len(difference.ids) > 0 {
			v.Catalog = append(v.Catalog, problem("catalog", fmt.Sprintf(difference.what, listed(difference.ids))))
		}
	}
}

func listed(ids []string) string {
	if len(ids) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxListed], ", "), len(ids)-maxListed)
	}
	return strings.Join(ids, ", ")
}

// checkRun checks that the run was complete, and that its verdicts follow from its results.
func (v *verification) checkRun() {
	if v.report.Interrupted {
		v.found("run", "it was interrupted")
	}
	if v.Cluster.Problem != "" {
		v.found("run", "the cluster could not be tested: %s", v.Cluster.Problem)
	}
	if v.report.RunID == "" || v.report.Runner == "" {
		v.found("run", "the report does not name the run and the runner")
	}
	if !v.report.Start.Before(v.report.End) {
		v.found("run", "it ended at %s, before its start at %s", v.report.End.Format(time.RFC3339Nano), v.report.Start.Format(time.RFC3339Nano))
	}
	v.checkShards()
	concluded := report.Concluded(v.report)
	if stated, computed := conclusions(v.report), conclusions(concluded); stated != computed {
		v.found("verdicts", "the report states %s, and its results are %s", stated, computed)
	}
	if v.report.Counts != nil && !maps.Equal(v.report.Counts, concluded.Counts) {
		v.found("counts", "they do not follow from the results")
	}
	measured := v.Cluster
	measured.Figures = nil
	measured = figures.Measure(v1alpha1.Report{Clusters: []v1alpha1.Cluster{measured}}).Clusters[0]
	if len(measured.Figures)+len(v.Cluster.Figures) > 0 && !reflect.DeepEqual(measured.Figures, v.Cluster.Figures) {
		v.found("figures", "they do not follow from the timelines")
	}
}

// checkShards checks that the report contains all shards of its run.
func (v *verification) checkShards() {
	if v.report.Shard != "" {
		v.found("shards", "the report contains only shard %s; merge the reports of all shards", v.report.Shard)
	}
	have, of := map[string]bool{}, 0
	for _, shard := range v.report.Shards {
		_, all, err := v1alpha1.ParseShard(shard)
		if err != nil {
			v.found("shards", "%v", err)
			return
		}
		if of != 0 && all != of {
			v.found("shards", "shards of %d and of %d do not belong together", of, all)
			return
		}
		have[shard], of = true, all
	}
	if runs := strings.Count(v.report.RunID, "+") + 1; runs < of {
		v.found("shards", "%d shards cannot come from %d runs", of, runs)
	}
	for number := range of {
		if shard := fmt.Sprintf("%d/%d", number+1, of); !have[shard] {
			v.found("shards", "shard %s is missing", shard)
		}
	}
}

// conclusions describes the verdicts of a report, without their reasons, whose wording is that of the runner that wrote it.
func conclusions(r v1alpha1.Report) string {
	var all []string
	for _, verdict := range r.Verdicts {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", verdict.Title(), verdict.Conclusion, verdict.Scope)))
	}
	return strings.Join(all, ", ")
}

// checkResults checks that no result contradicts itself.
func (v *verification) checkResults() {
	for _, result := range v.Cluster.Results {
		failed := slices.Contains(failing, result.Outcome)
		switch {
		case !slices.Contains(v1alpha1.Levels, result.Level):
			v.found(result.ID, "unknown level %q", result.Level)
		case failed && result.Failure == nil:
			v.found(result.ID, "it is %s, and the report contains no failure", result.Outcome)
		case (result.Outcome == v1alpha1.Passed || result.Outcome == v1alpha1.Skipped) && result.Failure != nil:
			v.found(result.ID, "it is %s, and the report contains its failure: %s", result.Outcome, result.Failure.Message)
		case result.Outcome == v1alpha1.Passed && result.Reason != "":
			v.found(result.ID, "it is passed, and the report contains a reason why not: %s", result.Reason)
		case result.Outcome == v1alpha1.Skipped && result.Reason == "":
			v.found(result.ID, "it is skipped, and the report contains no reason")
		case result.Outcome == v1alpha1.Deviated && result.Level != v1alpha1.Observed:
			v.found(result.ID, "it is %s, and only observed behaviors deviate", result.Level)
		}
	}
}

// checkSelection checks that each claimed profile was selected and tested as a whole.
func (v *verification) checkSelection() {
	for _, profile := range v.profiles {
		if reason := incomplete(v.Cluster, profile); reason != "" {
			v.found("profiles["+string(profile)+"]", "%s", reason)
		}
		for _, result := range ofProfile(v.Cluster, profile) {
			switch result.Outcome {
			case v1alpha1.Errored, v1alpha1.Interrupted:
				v.found(result.ID, "it has no result, because it was %s: %s", result.Outcome, report.ReasonOf(result))
			case v1alpha1.Outdated:
				v.found(result.ID, "the list of known failures of the run is outdated: %s", report.ReasonOf(result))
			}
		}
	}
}

// checkDerived checks that the claim is what follows from its report.
func (v *verification) checkDerived() {
	derived := derive(v.report, v.Cluster, v.Claim.Implementation, v.profiles)
	derived.Evidence = v.Claim.Evidence
	v.Problems = append(v.Problems, differences(v.Claim, derived)...)
}
