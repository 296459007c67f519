package report_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestVerdict(t *testing.T) {
	cluster := func(name string, results ...v1alpha1.Result) v1alpha1.Cluster {
		return v1alpha1.Cluster{Name: name, Results: results}
	}
	passed := reporttest.Unstarted("cascade.a", "a", v1alpha1.Passed)
	broken := reporttest.Unstarted("cascade.b", "b", v1alpha1.Failed)
	deviated := reporttest.Unstarted("cascade.c", "c", v1alpha1.Deviated)
	errored := reporttest.Unstarted("cascade.d", "d", v1alpha1.Errored)
	skipped := reporttest.Because(reporttest.Unstarted("cascade.e", "e", v1alpha1.Skipped), "no garbage collector runs")
	filtered := reporttest.Unstarted("cascade.f", "f", v1alpha1.Filtered)
	interrupted := reporttest.Unstarted("cascade.g", "g", v1alpha1.Interrupted)
	dead := v1alpha1.Cluster{Name: "dead", Problem: "connection refused"}

	for name, c := range map[string]struct {
		report     v1alpha1.Report
		conclusion report.Conclusion
		reason     string
	}{
		"all held":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, skipped, filtered)}}, report.Conformant, "1 behaviour held, 2 were not judged"},
		"one failed":      {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, broken, interrupted)}}, report.Nonconformant, "1 behaviour did not hold"},
		"failed and dead": {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken), dead}}, report.Nonconformant, `1 behaviour did not hold; cluster "dead": connection refused`},
		"deviated":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Conformant, "1 behaviour held, 1 deviated from what upstream is observed to do"},
		"only deviated":   {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", deviated)}}, report.Conformant, "0 behaviours held, 1 deviated from what upstream is observed to do"},
		"strict":          {v1alpha1.Report{Strict: true, Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Nonconformant, "1 behaviour did not hold"},
		"errored":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, errored, interrupted)}}, report.RunError, `1 behaviour on cluster "a" could not be judged because the run went wrong`},
		"one dead":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), dead}}, report.RunError, `cluster "dead": connection refused`},
		"interrupted":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, interrupted)}}, report.Incomplete, "the run was stopped before 1 behaviour had ended"},
		"stopped early":   {v1alpha1.Report{Interrupted: true, Clusters: []v1alpha1.Cluster{cluster("a", passed)}}, report.Incomplete, "the run was stopped before 0 behaviours had ended"},
		"all skipped":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), cluster("b", skipped, filtered)}}, report.NothingJudged, `cluster "b": no behaviour was judged (1: left out by this run's selection; 1: no garbage collector runs)`},
		"no behaviour":    {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a")}}, report.NothingJudged, `cluster "a": no behaviour was judged`},
		"no cluster":      {v1alpha1.Report{}, report.NothingJudged, "no cluster was named"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(report.VerdictOf(c.report)).To(Equal(report.Verdict{Conclusion: c.conclusion, Reason: c.reason}))
		})
	}
}
