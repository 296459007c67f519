package claim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

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

// mostListed is how many ids a problem names.
const mostListed = 5

// verification is the verification of one claim.
type verification struct {
	claim     v1alpha1.ConformanceReport
	catalogue []v1alpha1.Behavior
	// anyCatalogue permits the catalogue of another runner.
	anyCatalogue bool
	report       v1alpha1.Report
	cluster      v1alpha1.Cluster
	profiles     []v1alpha1.Profile
	problems     []Problem
}

func (v *verification) found(where, what string, values ...any) {
	v.problems = append(v.problems, problem(where, fmt.Sprintf(what, values...)))
}

// problem returns a problem whose texts are one line each.
func problem(where, what string) Problem {
	return Problem{report.Joined(where), report.Joined(what)}
}

// Verify returns the reasons why a claim does not hold; none when it does. The catalogue is that of this runner. Nothing is run: the report of
// the claim is checked against the catalogue and against its own evidence, and the claim is derived from it again.
func Verify(claim v1alpha1.ConformanceReport, catalogue []v1alpha1.Behavior) []Problem {
	v := &verification{claim: claim, catalogue: catalogue}
	v.verify()
	return v.problems
}

// Examined is a verified claim with the results that it is derived from.
type Examined struct {
	// Problems are the reasons why the claim does not hold, without those about the catalogue.
	Problems []Problem
	// Cluster contains the results.
	Cluster v1alpha1.Cluster
	// Current is set if the catalogue of the claim is that of this runner.
	Current bool
}

// Examine verifies a claim as Verify does, except that the catalogue may be that of another runner.
func Examine(claim v1alpha1.ConformanceReport, catalogue []v1alpha1.Behavior) Examined {
	v := &verification{claim: claim, anyCatalogue: true}
	v.verify()
	current := v1alpha1.CatalogueDigest(behaviorsOf(v.cluster)) == v1alpha1.CatalogueDigest(catalogue)
	return Examined{Problems: v.problems, Cluster: v.cluster, Current: current}
}

func (v *verification) verify() {
	if err := checkImplementation(v.claim.Implementation); err != nil {
		v.found("implementation", "%v", err)
	}
	whole, err := open(v.claim.Evidence)
	if err != nil {
		v.found("evidence", "%v", err)
		return
	}
	v.report = whole
	if v.cluster, err = clusterOf(whole, v.claim.Environment.Cluster); err != nil {
		v.found("environment.cluster", "%v", err)
		return
	}
	v.checkProfiles()
	if !v.anyCatalogue {
		v.checkCatalogue()
	}
	v.checkRun()
	v.checkEnvironment()
	v.checkSelection()
	v.checkResults()
	v.checkDerived()
}

// checkProfiles checks which profiles are claimed.
func (v *verification) checkProfiles() {
	if len(v.claim.Profiles) == 0 {
		v.found("profiles", "the claim has none")
	}
	for _, result := range v.claim.Profiles {
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

// checkCatalogue checks that the report contains the behaviors of this runner, each with its level, features and statement.
func (v *verification) checkCatalogue() {
	reported := map[string]v1alpha1.Behavior{}
	for _, behavior := range behaviorsOf(v.cluster) {
		reported[behavior.ID] = behavior
	}
	var missing, changed, unknown []string
	for _, behavior := range v.catalogue {
		other, is := reported[behavior.ID]
		delete(reported, behavior.ID)
		switch {
		case !is:
			missing = append(missing, behavior.ID)
		case v1alpha1.CatalogueDigest([]v1alpha1.Behavior{other}) != v1alpha1.CatalogueDigest([]v1alpha1.Behavior{behavior}),
			v.cluster.Resource != "" && other.AnyResource != behavior.AnyResource:
			changed = append(changed, behavior.ID)
		}
	}
	for id := range reported {
		unknown = append(unknown, id)
	}
	slices.Sort(unknown)
	for _, difference := range []struct {
		what string
		ids  []string
	}{
		{"the report does not contain %s", missing},
		{"the report changes the level, the features, the first version, the statement or the resources of %s", changed},
		{"this runner does not know %s", unknown},
	} {
		if len(difference.ids) > 0 {
			v.found("catalogue", difference.what+"; a claim must be verified with the runner that made its report, %s", listed(difference.ids), v.report.Runner)
		}
	}
}

func listed(ids []string) string {
	if len(ids) > mostListed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:mostListed], ", "), len(ids)-mostListed)
	}
	return strings.Join(ids, ", ")
}

// checkRun checks that the run was complete, and that its verdicts follow from its results.
func (v *verification) checkRun() {
	if v.report.Interrupted {
		v.found("run", "it was interrupted")
	}
	if v.cluster.Problem != "" {
		v.found("run", "the cluster could not be tested: %s", v.cluster.Problem)
	}
	if v.report.RunID == "" || v.report.Runner == "" {
		v.found("run", "the report does not name the run and the runner")
	}
	if !v.report.Start.Before(v.report.End) {
		v.found("run", "it ended at %s, before its start at %s", stamp(v.report.End), stamp(v.report.Start))
	}
	v.checkShards()
	if stated, computed := conclusions(v.report), conclusions(report.Concluded(v.report)); stated != computed {
		v.found("verdicts", "the report states %s, and its results are %s", stated, computed)
	}
	measured := v.cluster
	measured.Figures = nil
	measured = figures.Measure(v1alpha1.Report{Clusters: []v1alpha1.Cluster{measured}}).Clusters[0]
	if len(measured.Figures)+len(v.cluster.Figures) > 0 && !reflect.DeepEqual(measured.Figures, v.cluster.Figures) {
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

// conclusions describes the verdicts of a report.
func conclusions(r v1alpha1.Report) string {
	var all []string
	for _, verdict := range r.Verdicts {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s", verdict.Subject, verdict.Version))+" "+
			strings.TrimSpace(verdict.Conclusion+" "+verdict.Scope)+" ("+verdict.Reason+")")
	}
	return strings.Join(all, ", ")
}

// checkEnvironment checks that the stated versions and features are those that preflight found.
func (v *verification) checkEnvironment() {
	version := v.cluster.ServerVersion
	if version == "" {
		v.found("environment.serverVersion", "the report does not contain the version that the server returned")
	}
	i := slices.IndexFunc(v.cluster.Preflight, func(finding v1alpha1.Finding) bool { return finding.Check == "server" })
	switch {
	case i < 0:
		v.found("environment.preflight", "the report does not contain the check of the server")
	case version != "" && !slices.Contains(strings.Split(v.cluster.Preflight[i].Cause, ", "), "Kubernetes "+version):
		v.found("environment.serverVersion", "the report states %s, and preflight found %s", version, v.cluster.Preflight[i].Cause)
	}
	for _, feature := range v1alpha1.Features {
		count := 0
		for _, capability := range v.cluster.Capabilities {
			if capability.Feature == feature {
				count++
			}
		}
		if count != 1 {
			v.found("environment.capabilities", "the feature %s is listed %d times, must be once", feature, count)
		}
	}
	outcomes := map[string]v1alpha1.Outcome{}
	for _, result := range v.cluster.Results {
		outcomes[result.ID] = result.Outcome
	}
	for _, finding := range v.cluster.Preflight {
		for _, id := range finding.Behaviors {
			if outcome, is := outcomes[id]; is && outcome != v1alpha1.Skipped {
				v.found(id, "preflight found that it cannot be tested (%s), and its outcome is %s", finding.Cause, outcome)
			}
		}
	}
}

// checkSelection checks that each claimed profile was selected and tested as a whole.
func (v *verification) checkSelection() {
	for _, profile := range v.profiles {
		if reason := incomplete(v.cluster, profile); reason != "" {
			v.found("profiles["+string(profile)+"]", "%s", reason)
		}
		for _, result := range ofProfile(v.cluster, profile) {
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
	derived := derive(v.report, v.cluster, v.claim.Implementation, v.profiles)
	derived.Evidence = v.claim.Evidence
	v.problems = append(v.problems, differences(v.claim, derived)...)
}
