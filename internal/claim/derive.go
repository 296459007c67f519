package claim

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// derive derives a claim from a report, except for its evidence.
func derive(whole v1alpha1.Report, cluster v1alpha1.Cluster, of v1alpha1.Implementation, profiles []v1alpha1.Profile) v1alpha1.ConformanceReport {
	behaviors := behaviorsOf(cluster)
	claim := v1alpha1.ConformanceReport{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ClaimKind, Implementation: of,
		Runner: whole.Runner, RunID: whole.RunID, Start: whole.Start, End: whole.End, Shards: whole.Shards,
		Environment: v1alpha1.ClaimEnvironment{
			Cluster: cluster.Name, Resource: cluster.Resource, ServerVersion: cluster.ServerVersion, NodeRuntime: cluster.NodeRuntime,
			KubectlVersion: cluster.KubectlVersion, Features: append([]v1alpha1.FeatureStatus{}, cluster.Features...),
			Preflight: append([]v1alpha1.Finding{}, cluster.Preflight...),
		},
		Catalog:   v1alpha1.ClaimCatalog{Digest: v1alpha1.CatalogDigest(behaviors), Behaviors: len(behaviors)},
		Selection: v1alpha1.ClaimSelection{NotSelected: byReason(cluster.Results, v1alpha1.Filtered)},
		Profiles:  []v1alpha1.ProfileResult{},
	}
	for _, result := range cluster.Results {
		if report.WasSelected(result) {
			claim.Selection.Selected++
		}
	}
	for _, profile := range v1alpha1.Profiles {
		if slices.Contains(profiles, profile) {
			claim.Profiles = append(claim.Profiles, resultOf(profile, cluster))
		}
	}
	return claim
}

// behaviorsOf returns the catalog of a report.
func behaviorsOf(cluster v1alpha1.Cluster) []v1alpha1.Behavior {
	behaviors := make([]v1alpha1.Behavior, len(cluster.Results))
	for i, result := range cluster.Results {
		behaviors[i] = result.Behavior
	}
	return behaviors
}

// failing are the outcomes of behaviors that failed: a list of known failures and a strict run do not change what a claim states.
var failing = []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Known, v1alpha1.Deviated}

// resultOf summarizes the results of a profile.
func resultOf(profile v1alpha1.Profile, cluster v1alpha1.Cluster) v1alpha1.ProfileResult {
	results, untested := ofProfile(cluster, profile), false
	summary := v1alpha1.ProfileResult{
		Profile: profile, Passed: []string{}, Skipped: byReason(results, v1alpha1.Skipped), Extended: extendedOf(results),
	}
	counts := map[v1alpha1.Level]*v1alpha1.LevelCount{}
	for _, level := range v1alpha1.Levels {
		counts[level] = &v1alpha1.LevelCount{Level: level}
	}
	for _, result := range results {
		count := counts[result.Level]
		switch failed := slices.Contains(failing, result.Outcome); {
		case count == nil: // Verify refuses unknown levels
		case result.Outcome == v1alpha1.Passed:
			count.Passed++
			summary.Passed = append(summary.Passed, result.ID)
		case failed && result.Level == v1alpha1.Observed:
			count.Failed++
			summary.Deviated = append(summary.Deviated, failedOf(result))
		case failed:
			count.Failed++
			summary.Failed = append(summary.Failed, failedOf(result))
		case result.Outcome == v1alpha1.Skipped:
			count.Skipped++
			untested = untested || result.Level == v1alpha1.Core && !isNewer(result.Behavior, cluster)
		}
	}
	for _, level := range v1alpha1.Levels {
		summary.Levels = append(summary.Levels, *counts[level])
	}
	switch {
	case len(summary.Failed) > 0:
		summary.Conclusion = v1alpha1.ProfileFailed
	case untested:
		summary.Conclusion = v1alpha1.ProfilePartial
	default:
		summary.Conclusion = v1alpha1.ProfilePassed
	}
	return summary
}

// isNewer reports whether a behavior came with a later version of Kubernetes, or of kubectl, than the tested one.
func isNewer(behavior v1alpha1.Behavior, cluster v1alpha1.Cluster) bool {
	tested := cluster.ServerVersion
	if behavior.IsKubectl() {
		tested = cluster.KubectlVersion
	}
	present, unknown := version.ParseGeneric(tested)
	since, always := version.ParseGeneric(behavior.Since)
	return unknown == nil && always == nil && present.LessThan(since)
}

func failedOf(result v1alpha1.Result) v1alpha1.FailedBehavior {
	failed := v1alpha1.FailedBehavior{ID: result.ID}
	if result.Failure != nil {
		failed.Message = result.Failure.Message
	}
	return failed
}

// extendedOf lists what the extended behaviors show.
func extendedOf(results []v1alpha1.Result) v1alpha1.ExtendedSupport {
	extended := slices.DeleteFunc(slices.Clone(results), func(result v1alpha1.Result) bool { return result.Level != v1alpha1.Extended })
	support := v1alpha1.ExtendedSupport{Supported: []string{}, Unsupported: byReason(extended, v1alpha1.Skipped)}
	for _, result := range extended {
		if result.Outcome == v1alpha1.Passed {
			support.Supported = append(support.Supported, result.ID)
		}
	}
	return support
}

// byReason groups results of an outcome by reason.
func byReason(results []v1alpha1.Result, outcome v1alpha1.Outcome) []v1alpha1.ReasonedBehaviors {
	var groups []v1alpha1.ReasonedBehaviors
	for _, group := range report.ByReason(results, outcome) {
		groups = append(groups, v1alpha1.ReasonedBehaviors{Reason: group.Reason, Behaviors: group.IDs})
	}
	return groups
}
