package report_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestVerdict(t *testing.T) {
	cluster := func(name string, results ...report.Result) report.Cluster {
		return report.Cluster{Name: name, Results: results}
	}
	passed := reporttest.Unstarted("cascade.a", "a", report.Passed)
	broken := reporttest.Unstarted("cascade.b", "b", report.Failed)
	deviated := reporttest.Unstarted("cascade.c", "c", report.Deviated)
	errored := reporttest.Unstarted("cascade.d", "d", report.Errored)
	skipped := reporttest.Because(reporttest.Unstarted("cascade.e", "e", report.Skipped), "no garbage collector answered")
	filtered := reporttest.Unstarted("cascade.f", "f", report.Filtered)
	interrupted := reporttest.Unstarted("cascade.g", "g", report.Interrupted)
	dead := report.Cluster{Name: "dead", Problem: "connection refused"}

	for name, c := range map[string]struct {
		report     report.Report
		conclusion report.Conclusion
		reason     string
	}{
		"all held":        {report.Report{Clusters: []report.Cluster{cluster("a", passed, skipped, filtered)}}, report.Conformant, "1 behaviour held, 2 were not judged"},
		"one failed":      {report.Report{Clusters: []report.Cluster{cluster("a", passed, broken, interrupted)}}, report.Nonconformant, "1 behaviour did not hold"},
		"failed and dead": {report.Report{Clusters: []report.Cluster{cluster("a", broken), dead}}, report.Nonconformant, `1 behaviour did not hold; cluster "dead": connection refused`},
		"deviated":        {report.Report{Clusters: []report.Cluster{cluster("a", passed, deviated)}}, report.Conformant, "1 behaviour held, 1 deviated from what upstream is observed to do"},
		"only deviated":   {report.Report{Clusters: []report.Cluster{cluster("a", deviated)}}, report.Conformant, "0 behaviours held, 1 deviated from what upstream is observed to do"},
		"strict":          {report.Report{Strict: true, Clusters: []report.Cluster{cluster("a", passed, deviated)}}, report.Nonconformant, "1 behaviour did not hold"},
		"errored":         {report.Report{Clusters: []report.Cluster{cluster("a", passed, errored, interrupted)}}, report.RunError, `1 behaviour on cluster "a" could not be judged because the run went wrong`},
		"one dead":        {report.Report{Clusters: []report.Cluster{cluster("a", passed), dead}}, report.RunError, `cluster "dead": connection refused`},
		"interrupted":     {report.Report{Clusters: []report.Cluster{cluster("a", passed, interrupted)}}, report.Incomplete, "the run was stopped before 1 behaviour had ended"},
		"stopped early":   {report.Report{Interrupted: true, Clusters: []report.Cluster{cluster("a", passed)}}, report.Incomplete, "the run was stopped before 0 behaviours had ended"},
		"all skipped":     {report.Report{Clusters: []report.Cluster{cluster("a", passed), cluster("b", skipped, filtered)}}, report.NothingJudged, `cluster "b": no behaviour was judged (1: left out by this run's selection; 1: no garbage collector answered)`},
		"no behaviour":    {report.Report{Clusters: []report.Cluster{cluster("a")}}, report.NothingJudged, `cluster "a": no behaviour was judged`},
		"no cluster":      {report.Report{}, report.NothingJudged, "no cluster was named"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.report.Verdict()).To(Equal(report.Verdict{Conclusion: c.conclusion, Reason: c.reason}))
		})
	}
}
