package report

import "github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

// OutcomeName is what an outcome is called for people.
func OutcomeName(outcome v1alpha1.Outcome) string {
	if outcome == v1alpha1.Filtered {
		return "not selected"
	}
	return string(outcome)
}

// OutcomeMeanings describe the outcomes.
var OutcomeMeanings = map[v1alpha1.Outcome]string{
	v1alpha1.Passed:      "The cluster does what the behavior states.",
	v1alpha1.Failed:      "It does not.",
	v1alpha1.Outdated:    "It is listed as a known failure, and passed, or deviated after the date of the entry. This fails the run.",
	v1alpha1.Known:       "It failed, and is in the list of known failures. This does not fail the run.",
	v1alpha1.Deviated:    "It does not, but no document promises the behavior, so it fails only a strict run.",
	v1alpha1.Errored:     "The run could not find out, because a connection was lost, a worker ended, or the cluster could not be tested.",
	v1alpha1.Interrupted: "The run was stopped before the test ended.",
	v1alpha1.Skipped:     "The cluster or the credentials do not allow the test. The reason names what is missing.",
	v1alpha1.Filtered:    "The run did not select the test.",
}

// LevelMeanings describe how binding the levels are.
var LevelMeanings = map[v1alpha1.Level]string{
	v1alpha1.Core:     "Promised by the Kubernetes documentation to every cluster.",
	v1alpha1.Extended: "Promised where a feature is available.",
	v1alpha1.Observed: "Observed of upstream Kubernetes, without a written promise.",
}

// FeatureMeanings describe the features that behaviors may require.
var FeatureMeanings = map[v1alpha1.Feature]string{
	v1alpha1.GC:            "the garbage collector",
	v1alpha1.KCM:           "the other controllers of kube-controller-manager",
	v1alpha1.CRD:           "permission to create CustomResourceDefinitions",
	v1alpha1.Admin:         "permission to write cluster-scoped objects",
	v1alpha1.Namespace:     "permission to create namespaces",
	v1alpha1.Volume:        "permission to create PersistentVolumes",
	v1alpha1.Class:         "permission to create PriorityClasses and VolumeAttributesClasses",
	v1alpha1.SimulatedNode: "Nodes without a machine",
	v1alpha1.Hook:          "an API server that reaches webhooks of the run",
	v1alpha1.Node:          "a real kubelet and container runtime",
	v1alpha1.TwoNodes:      "a second real node",
	v1alpha1.PodNetwork:    "a network between pods",
	v1alpha1.Kubectl:       "a kubectl that the run can execute",
	v1alpha1.Controller:    "a controller of the resource under test",
	v1alpha1.OwnCluster:    "a cluster that was created for the run",
}
