package report

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

func TestUnannouncedSkips(t *testing.T) {
	result := func(id string, outcome v1alpha1.Outcome, reason string) v1alpha1.Result {
		return v1alpha1.Result{Behavior: v1alpha1.Behavior{ID: id}, Outcome: outcome, Reason: reason}
	}
	cluster := v1alpha1.Cluster{
		Preflight: []v1alpha1.Finding{{Cause: "no Pods", Behaviors: []string{"announced", "passes"}}},
		Results: []v1alpha1.Result{
			result("announced", v1alpha1.Skipped, "no Pods"), result("passes", v1alpha1.Passed, ""), result("surprising", v1alpha1.Skipped, "no Jobs"),
			result("gated", v1alpha1.Skipped, "the feature gate X is off"), result("expected", v1alpha1.Skipped, "as here"),
		},
	}

	NewWithT(t).Expect(UnannouncedSkips(cluster, "as here")).To(ConsistOf(
		"passes passed, and preflight announced that it is skipped: no Pods",
		"surprising is skipped, and preflight did not announce it: no Jobs"))
}
