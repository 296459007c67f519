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
	known := reporttest.Unstarted("cascade.h", "h", v1alpha1.Known)
	outdated := reporttest.Unstarted("cascade.i", "i", v1alpha1.Outdated)
	dead := v1alpha1.Cluster{Name: "dead", Problem: "connection refused"}

	for name, c := range map[string]struct {
		report     v1alpha1.Report
		conclusion report.Conclusion
		reason     string
	}{
		"all held":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, skipped, filtered)}}, report.Conformant, "1 behavior passed, 1 skipped, 1 not selected"},
		"one failed":          {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, broken, interrupted)}}, report.Nonconformant, "1 behavior failed"},
		"failed and dead":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken), dead}}, report.Nonconformant, `1 behavior failed; cluster "dead": connection refused`},
		"deviated":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Conformant, "1 behavior passed, 1 deviated where nothing is promised"},
		"known":               {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, known)}}, report.ConformantExceptKnown, "1 behavior passed, 1 failed as known"},
		"only known":          {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", known, skipped)}}, report.ConformantExceptKnown, "0 behaviors passed, 1 failed as known, 1 skipped"},
		"known, interrupted":  {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", known, interrupted)}}, report.Incomplete, "the run was interrupted before 1 behavior ended"},
		"outdated":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, known, outdated)}}, report.KnownFailuresOutdated, "1 known failure is outdated: cascade.i"},
		"outdated on two":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", outdated), cluster("b", outdated)}}, report.KnownFailuresOutdated, "1 known failure is outdated: cascade.i"},
		"outdated and dead":   {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", outdated), dead}}, report.KnownFailuresOutdated, `1 known failure is outdated: cascade.i; cluster "dead": connection refused`},
		"failed and outdated": {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken, outdated)}}, report.Nonconformant, "1 behavior failed; 1 known failure is outdated: cascade.i"},
		"only deviated":       {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", deviated)}}, report.Conformant, "0 behaviors passed, 1 deviated where nothing is promised"},
		"strict":              {v1alpha1.Report{Strict: true, Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, report.Nonconformant, "1 behavior failed"},
		"errored":             {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, errored, interrupted)}}, report.RunError, `1 behavior errored on cluster "a"`},
		"one dead":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), dead}}, report.RunError, `cluster "dead": connection refused`},
		"interrupted":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, interrupted)}}, report.Incomplete, "the run was interrupted before 1 behavior ended"},
		"stopped early":       {v1alpha1.Report{Interrupted: true, Clusters: []v1alpha1.Cluster{cluster("a", passed)}}, report.Incomplete, "the run was interrupted"},
		"all skipped":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), cluster("b", skipped, filtered)}}, report.NothingTested, `cluster "b": no behavior ran (1: no garbage collector runs)`},
		"no behavior":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a")}}, report.NothingTested, `cluster "a": no behavior ran`},
		"no cluster":          {v1alpha1.Report{}, report.NothingTested, "no cluster specified"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			verdict := report.VerdictOf(c.report)
			g.Expect(verdict.Conclusion).To(Equal(c.conclusion))
			g.Expect(verdict.Reason).To(Equal(c.reason))
		})
	}
}

func TestAConformantRunNamesWhatItSelected(t *testing.T) {
	results := func(ids map[string]v1alpha1.Outcome) (results []v1alpha1.Result) {
		for id, outcome := range ids {
			results = append(results, reporttest.Unstarted(id, id, outcome))
		}
		return results
	}
	const passed, failed, filtered, skipped, known = v1alpha1.Passed, v1alpha1.Failed, v1alpha1.Filtered, v1alpha1.Skipped, v1alpha1.Known
	for _, test := range []struct {
		ids  map[string]v1alpha1.Outcome
		want string
	}{
		{map[string]v1alpha1.Outcome{"x.a": passed, "y.a": skipped}, "conformant: 1 behavior passed, 1 skipped"},
		{map[string]v1alpha1.Outcome{"x.a": passed, "x.b": passed, "y.a": filtered, "z.a": passed}, "conformant in 2 of 3 suites: 3 behaviors passed, 1 not selected"},
		{map[string]v1alpha1.Outcome{"x.a": passed, "x.b": filtered, "y.a": filtered, "z.a": skipped}, "conformant: 2 of 4 behaviors selected; 1 behavior passed, 1 skipped, 2 not selected"},
		{map[string]v1alpha1.Outcome{"x.a": known, "y.a": filtered}, "conformant except known failures in 1 of 2 suites: 0 behaviors passed, 1 failed as known, 1 not selected"},
		{map[string]v1alpha1.Outcome{"x.a": failed, "y.a": filtered}, "not conformant: 1 behavior failed"},
	} {
		g := NewWithT(t)
		whole := v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "a", Results: results(test.ids)}}}
		g.Expect(report.VerdictOf(whole).String()).To(Equal(test.want))
		g.Expect(report.Concluded(whole).Verdicts[0].Scope).To(Equal(report.VerdictOf(whole).Scope))
	}
	whole := v1alpha1.Report{Clusters: []v1alpha1.Cluster{
		{Name: "a", Results: results(map[string]v1alpha1.Outcome{"x.a": passed, "kubectl.a": filtered})},
		{Name: "b", Results: results(map[string]v1alpha1.Outcome{"x.a": passed, "y.a": filtered})},
	}}
	NewWithT(t).Expect(report.VerdictOf(whole).Title()).To(Equal("conformant in 1 of 3 suites"), "each behavior counts once")
}

func TestAVerdictNamesACauseOnceWithTheNumberOfBehaviors(t *testing.T) {
	errored := reporttest.Because(reporttest.Unstarted("x.a", "a", v1alpha1.Errored), "refused")
	var whole v1alpha1.Report
	for _, name := range []string{"a widgets", "a gadgets", "b", "c", "d"} {
		whole.Clusters = append(whole.Clusters, v1alpha1.Cluster{Name: name, Problem: "refused", Results: []v1alpha1.Result{errored}})
	}
	g := NewWithT(t)
	g.Expect(report.VerdictOf(whole).Reason).To(Equal(`clusters "a widgets", "a gadgets", "b" and 2 more: refused (5 behaviors errored)`))
	whole.Clusters = whole.Clusters[:2]
	whole.Clusters[1].Problem = ""
	g.Expect(report.VerdictOf(whole).Reason).To(Equal(`cluster "a widgets": refused (1 behavior errored); 1 behavior errored on cluster "a gadgets"`))
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
