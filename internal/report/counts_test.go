package report_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestCountLine(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes []v1alpha1.Outcome
		strict   bool
		want     string
	}{
		"nothing":     {nil, false, "0 passed, 0 failed, 0 skipped"},
		"each":        {v1alpha1.Outcomes, false, "1 passed, 1 failed, 1 outdated known, 1 failed as known, 1 deviated, 1 errored, 1 interrupted, 1 skipped, 1 not selected"},
		"strict":      {v1alpha1.Outcomes, true, "1 passed, 2 failed, 1 outdated known, 1 failed as known, 1 errored, 1 interrupted, 1 skipped, 1 not selected"},
		"interrupted": {[]v1alpha1.Outcome{v1alpha1.Passed, v1alpha1.Interrupted, v1alpha1.Interrupted}, false, "1 passed, 0 failed, 2 interrupted, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := v1alpha1.Cluster{Name: "a"}
			for _, outcome := range test.outcomes {
				cluster.Results = append(cluster.Results, reporttest.Unstarted("x."+string(outcome), "a", outcome))
			}
			whole := reporttest.Run("r", 0, cluster)
			whole.Strict = test.strict
			NewWithT(t).Expect(report.CountLine(whole)).To(Equal(test.want))
		})
	}
}

func TestConcluded_Counts(t *testing.T) {
	g := NewWithT(t)
	passed, skipped := reporttest.Unstarted("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("x.b", "b", v1alpha1.Skipped)
	before := v1alpha1.Report{Clusters: []v1alpha1.Cluster{reporttest.OnCluster("a", passed, skipped), reporttest.OnCluster("b", passed)}}
	whole := report.Concluded(before)
	g.Expect(whole.Counts).To(Equal(v1alpha1.Counts{v1alpha1.Passed: 2, v1alpha1.Skipped: 1}))
	g.Expect(whole.Clusters[1].Counts).To(Equal(v1alpha1.Counts{v1alpha1.Passed: 1}))
	g.Expect(before.Clusters[1].Counts).To(BeNil(), "the report from which it was made has not changed")
}
