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
		"all held":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, skipped, filtered)}}, report.Conformant, "1 behavior passed, 1 skipped, 1 not selected"},
		"one failed":      {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, broken, interrupted)}}, report.Nonconformant, "1 behavior failed"},
		"failed and dead": {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken), dead}}, report.Nonconformant, `1 behavior failed; cluster "dead": connection refused`},
		"deviated":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Conformant, "1 behavior passed, 1 deviated from what upstream is observed to do"},
		"only deviated":   {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", deviated)}}, report.Conformant, "0 behaviors passed, 1 deviated from what upstream is observed to do"},
		"strict":          {v1alpha1.Report{Strict: true, Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Nonconformant, "1 behavior failed"},
		"errored":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, errored, interrupted)}}, report.RunError, `1 behavior errored on cluster "a"`},
		"one dead":        {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), dead}}, report.RunError, `cluster "dead": connection refused`},
		"interrupted":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, interrupted)}}, report.Incomplete, "the run was interrupted before 1 behavior ended"},
		"stopped early":   {v1alpha1.Report{Interrupted: true, Clusters: []v1alpha1.Cluster{cluster("a", passed)}}, report.Incomplete, "the run was interrupted before 0 behaviors ended"},
		"all skipped":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), cluster("b", skipped, filtered)}}, report.NothingTested, `cluster "b": no behavior ran (1: left out by this run's selection; 1: no garbage collector runs)`},
		"no behavior":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a")}}, report.NothingTested, `cluster "a": no behavior ran`},
		"no cluster":      {v1alpha1.Report{}, report.NothingTested, "no cluster specified"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(report.VerdictOf(c.report)).To(Equal(report.Verdict{Conclusion: c.conclusion, Reason: c.reason}))
		})
	}
}

// ofKubectl makes a result one of kubectl.
func ofKubectl(id string, outcome v1alpha1.Outcome) v1alpha1.Result {
	result := reporttest.Unstarted(id, id, outcome)
	result.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	return result
}

func TestKubectlHasAVerdictOfItsOwn(t *testing.T) {
	held, broken := reporttest.Unstarted("cascade.a", "a", v1alpha1.Passed), reporttest.Unstarted("cascade.b", "b", v1alpha1.Failed)
	filtered := reporttest.Unstarted("cascade.c", "c", v1alpha1.Filtered)
	of := func(results ...v1alpha1.Result) v1alpha1.Report {
		return v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "a", KubectlVersion: "v1.37.2", Results: results}}}
	}
	for name, c := range map[string]struct {
		report           v1alpha1.Report
		cluster, kubectl report.Conclusion
	}{
		"both held":                     {of(held, ofKubectl("kubectl.a", v1alpha1.Passed)), report.Conformant, report.Conformant},
		"only kubectl failed":           {of(held, ofKubectl("kubectl.a", v1alpha1.Failed)), report.Conformant, report.Nonconformant},
		"only the cluster failed":       {of(held, broken, ofKubectl("kubectl.a", v1alpha1.Passed)), report.Nonconformant, report.Conformant},
		"both failed":                   {of(broken, ofKubectl("kubectl.a", v1alpha1.Failed)), report.Nonconformant, report.Nonconformant},
		"kubectl could not be run":      {of(held, ofKubectl("kubectl.a", v1alpha1.Errored)), report.Conformant, report.RunError},
		"there is no kubectl":           {of(held, ofKubectl("kubectl.a", v1alpha1.Skipped)), report.Conformant, ""},
		"kubectl was not chosen":        {of(held, ofKubectl("kubectl.a", v1alpha1.Filtered)), report.Conformant, ""},
		"only kubectl was chosen":       {of(filtered, ofKubectl("kubectl.a", v1alpha1.Failed)), report.NotTested, report.Nonconformant},
		"only a missing one was chosen": {of(filtered, ofKubectl("kubectl.a", v1alpha1.Skipped)), report.NothingTested, ""},
		"only kubectl was tested":       {of(reporttest.Unstarted("cascade.d", "d", v1alpha1.Skipped), ofKubectl("kubectl.a", v1alpha1.Passed)), report.NothingTested, report.Conformant},
		"a cluster is dead": {v1alpha1.Report{Clusters: append(of(held, ofKubectl("kubectl.a", v1alpha1.Passed)).Clusters,
			v1alpha1.Cluster{Name: "dead", Problem: "connection refused"})}, report.RunError, report.Conformant},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(report.VerdictOf(c.report).Conclusion).To(Equal(c.cluster))
			kubectl, tested := report.KubectlVerdictOf(c.report)
			g.Expect(tested).To(Equal(c.kubectl != ""))
			g.Expect(kubectl.Conclusion).To(Equal(c.kubectl))

			verdicts := report.Concluded(c.report).Verdicts
			g.Expect(verdicts[0].Subject).To(Equal(v1alpha1.SubjectCluster))
			g.Expect(verdicts[0].Conclusion).To(BeEquivalentTo(c.cluster))
			if tested {
				g.Expect(verdicts).To(HaveLen(2))
				g.Expect(verdicts[1]).To(And(HaveField("Subject", v1alpha1.SubjectKubectl), HaveField("Version", "v1.37.2"), HaveField("Conclusion", BeEquivalentTo(c.kubectl))))
			}
		})
	}
}
