package report_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// verdictOn returns the verdict of a report on a subject, which was tested.
func verdictOn(t *testing.T, subject string, r v1alpha1.Report) v1alpha1.Verdict {
	t.Helper()
	verdict, tested := report.Concluded(r).Verdict(subject)
	NewWithT(t).Expect(tested).To(BeTrue())
	return verdict
}

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
		conclusion v1alpha1.Conclusion
		reason     string
	}{
		"all held":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, skipped, filtered)}}, v1alpha1.Conformant, ""},
		"one failed":          {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, broken, interrupted)}}, v1alpha1.Nonconformant, "1 behavior failed"},
		"failed and dead":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken), dead}}, v1alpha1.Nonconformant, `1 behavior failed; cluster "dead": connection refused`},
		"deviated":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, v1alpha1.Conformant, ""},
		"known":               {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, known)}}, v1alpha1.ConformantExceptKnown, ""},
		"only known":          {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", known, skipped)}}, v1alpha1.ConformantExceptKnown, ""},
		"known, interrupted":  {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", known, interrupted)}}, v1alpha1.Incomplete, "the run was interrupted before 1 behavior ended"},
		"outdated":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, known, outdated)}}, v1alpha1.KnownFailuresOutdated, "1 known failure is outdated: cascade.i"},
		"outdated on two":     {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", outdated), cluster("b", outdated)}}, v1alpha1.KnownFailuresOutdated, "1 known failure is outdated: cascade.i"},
		"outdated and dead":   {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", outdated), dead}}, v1alpha1.KnownFailuresOutdated, `1 known failure is outdated: cascade.i; cluster "dead": connection refused`},
		"failed and outdated": {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", broken, outdated)}}, v1alpha1.Nonconformant, "1 behavior failed; 1 known failure is outdated: cascade.i"},
		"only deviated":       {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", deviated)}}, v1alpha1.Conformant, ""},
		"strict":              {v1alpha1.Report{Strict: true, Clusters: []v1alpha1.Cluster{cluster("a", passed, deviated)}}, v1alpha1.Nonconformant, "1 behavior failed"},
		"errored":             {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, errored, interrupted)}}, v1alpha1.RunError, `1 behavior errored on cluster "a"`},
		"one dead":            {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), dead}}, v1alpha1.RunError, `cluster "dead": connection refused`},
		"interrupted":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed, interrupted)}}, v1alpha1.Incomplete, "the run was interrupted before 1 behavior ended"},
		"stopped early":       {v1alpha1.Report{Interrupted: true, Clusters: []v1alpha1.Cluster{cluster("a", passed)}}, v1alpha1.Incomplete, "the run was interrupted"},
		"all skipped":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a", passed), cluster("b", skipped, filtered)}}, v1alpha1.NothingTested, `cluster "b": no behavior ran (1: no garbage collector runs)`},
		"no behavior":         {v1alpha1.Report{Clusters: []v1alpha1.Cluster{cluster("a")}}, v1alpha1.NothingTested, `cluster "a": no behavior ran`},
		"no cluster":          {v1alpha1.Report{}, v1alpha1.NothingTested, "no cluster specified"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			verdict := verdictOn(t, v1alpha1.SubjectCluster, c.report)
			g.Expect(verdict.Conclusion).To(Equal(c.conclusion))
			g.Expect(verdict.Reason).To(Equal(c.reason))
			g.Expect(verdict.String()).To(Equal(strings.TrimSuffix(string(c.conclusion)+": "+c.reason, ": ")))
		})
	}
}

func TestVerdict_Scope(t *testing.T) {
	results := func(ids map[string]v1alpha1.Outcome) (results []v1alpha1.Result) {
		for id, outcome := range ids {
			results = append(results, reporttest.Unstarted(id, id, outcome))
		}
		return results
	}
	const passed, failed, filtered, skipped, known = v1alpha1.Passed, v1alpha1.Failed, v1alpha1.Filtered, v1alpha1.Skipped, v1alpha1.Known
	for _, test := range []struct {
		ids        map[string]v1alpha1.Outcome
		conclusion v1alpha1.Conclusion
		scope      string
	}{
		{map[string]v1alpha1.Outcome{"x.a": passed, "y.a": skipped}, v1alpha1.Conformant, ""},
		{map[string]v1alpha1.Outcome{"x.a": passed, "x.b": passed, "y.a": filtered, "z.a": passed}, v1alpha1.Conformant, "in 2 of 3 suites"},
		{map[string]v1alpha1.Outcome{"x.a": passed, "x.b": filtered, "y.a": filtered, "z.a": skipped}, v1alpha1.Conformant, "2 of 4 behaviors selected"},
		{map[string]v1alpha1.Outcome{"x.a": known, "y.a": filtered}, v1alpha1.ConformantExceptKnown, "in 1 of 2 suites"},
		{map[string]v1alpha1.Outcome{"x.a": failed, "y.a": filtered}, v1alpha1.Nonconformant, ""},
	} {
		verdict := verdictOn(t, v1alpha1.SubjectCluster, v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "a", Results: results(test.ids)}}})
		NewWithT(t).Expect(verdict).To(And(HaveField("Conclusion", test.conclusion), HaveField("Scope", test.scope)))
	}
	whole := v1alpha1.Report{Clusters: []v1alpha1.Cluster{
		{Name: "a", Results: results(map[string]v1alpha1.Outcome{"x.a": passed, "kubectl.a": filtered})},
		{Name: "b", Results: results(map[string]v1alpha1.Outcome{"x.a": passed, "y.a": filtered})},
	}}
	NewWithT(t).Expect(verdictOn(t, v1alpha1.SubjectCluster, whole).Scope).To(Equal("in 1 of 3 suites"), "each behavior counts once")
}

func TestVerdict_Causes(t *testing.T) {
	errored := reporttest.Because(reporttest.Unstarted("x.a", "a", v1alpha1.Errored), "refused")
	var whole v1alpha1.Report
	for _, name := range []string{"a widgets", "a gadgets", "b", "c", "d"} {
		whole.Clusters = append(whole.Clusters, v1alpha1.Cluster{Name: name, Problem: "refused", Results: []v1alpha1.Result{errored}})
	}
	g := NewWithT(t)
	g.Expect(verdictOn(t, v1alpha1.SubjectCluster, whole).Reason).To(Equal(`clusters "a widgets", "a gadgets", "b" and 2 more: refused (5 behaviors errored)`))
	whole.Clusters = whole.Clusters[:2]
	whole.Clusters[1].Problem = ""
	g.Expect(verdictOn(t, v1alpha1.SubjectCluster, whole).Reason).To(Equal(`cluster "a widgets": refused (1 behavior errored); 1 behavior errored on cluster "a gadgets"`))
}

// ofKubectl makes a result one of kubectl.
func ofKubectl(id string, outcome v1alpha1.Outcome) v1alpha1.Result {
	result := reporttest.Unstarted(id, id, outcome)
	result.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	return result
}

func TestVerdict_Kubectl(t *testing.T) {
	held, broken := reporttest.Unstarted("cascade.a", "a", v1alpha1.Passed), reporttest.Unstarted("cascade.b", "b", v1alpha1.Failed)
	filtered := reporttest.Unstarted("cascade.c", "c", v1alpha1.Filtered)
	of := func(results ...v1alpha1.Result) v1alpha1.Report {
		return v1alpha1.Report{Clusters: []v1alpha1.Cluster{{Name: "a", KubectlVersion: "v1.37.2", Results: results}}}
	}
	for name, c := range map[string]struct {
		report           v1alpha1.Report
		cluster, kubectl v1alpha1.Conclusion
	}{
		"both held":                     {of(held, ofKubectl("kubectl.a", v1alpha1.Passed)), v1alpha1.Conformant, v1alpha1.Conformant},
		"only kubectl failed":           {of(held, ofKubectl("kubectl.a", v1alpha1.Failed)), v1alpha1.Conformant, v1alpha1.Nonconformant},
		"only the cluster failed":       {of(held, broken, ofKubectl("kubectl.a", v1alpha1.Passed)), v1alpha1.Nonconformant, v1alpha1.Conformant},
		"both failed":                   {of(broken, ofKubectl("kubectl.a", v1alpha1.Failed)), v1alpha1.Nonconformant, v1alpha1.Nonconformant},
		"kubectl could not be run":      {of(held, ofKubectl("kubectl.a", v1alpha1.Errored)), v1alpha1.Conformant, v1alpha1.RunError},
		"there is no kubectl":           {of(held, ofKubectl("kubectl.a", v1alpha1.Skipped)), v1alpha1.Conformant, ""},
		"kubectl was not chosen":        {of(held, ofKubectl("kubectl.a", v1alpha1.Filtered)), v1alpha1.Conformant, ""},
		"only kubectl was chosen":       {of(filtered, ofKubectl("kubectl.a", v1alpha1.Failed)), v1alpha1.NotTested, v1alpha1.Nonconformant},
		"only a missing one was chosen": {of(filtered, ofKubectl("kubectl.a", v1alpha1.Skipped)), v1alpha1.NothingTested, ""},
		"only kubectl was tested":       {of(reporttest.Unstarted("cascade.d", "d", v1alpha1.Skipped), ofKubectl("kubectl.a", v1alpha1.Passed)), v1alpha1.NothingTested, v1alpha1.Conformant},
		"a cluster is dead": {v1alpha1.Report{Clusters: append(of(held, ofKubectl("kubectl.a", v1alpha1.Passed)).Clusters,
			v1alpha1.Cluster{Name: "dead", Problem: "connection refused"})}, v1alpha1.RunError, v1alpha1.Conformant},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			verdicts := report.Concluded(c.report).Verdicts
			g.Expect(verdicts[0]).To(And(HaveField("Subject", v1alpha1.SubjectCluster), HaveField("Conclusion", c.cluster)))
			if c.kubectl == "" {
				g.Expect(verdicts).To(HaveLen(1))
				return
			}
			g.Expect(verdicts).To(HaveLen(2))
			g.Expect(verdicts[1]).To(And(HaveField("Subject", v1alpha1.SubjectKubectl), HaveField("Version", "v1.37.2"), HaveField("Conclusion", c.kubectl)))
			g.Expect(verdicts[1].String()).To(HavePrefix("kubectl v1.37.2: " + string(c.kubectl)))
		})
	}
}
