package merge_test

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func asFile(file string, r v1alpha1.Report) report.Source {
	return report.Source{Report: r, File: file}
}

func asMade(r v1alpha1.Report) report.Source { return report.Source{Report: r} }

func TestReports_Shards(t *testing.T) {
	g := NewWithT(t)
	second := reporttest.Run("two", time.Minute, reporttest.OnCluster("a",
		reporttest.Unstarted("x.a", "a", v1alpha1.Filtered),
		reporttest.Ran("x.b", "b", v1alpha1.Failed),
		reporttest.Because(reporttest.Unstarted("x.c", "c", v1alpha1.Skipped), "no node"),
		reporttest.Unstarted("x.d", "d", v1alpha1.Filtered),
		reporttest.Unstarted("x.e", "e", v1alpha1.Skipped),
		reporttest.Unstarted("x.f", "f", v1alpha1.Filtered),
	))
	second.Interrupted = true
	first := reporttest.Run("one", 0, reporttest.OnCluster("a",
		reporttest.Ran("x.a", "a", v1alpha1.Passed),
		reporttest.Unstarted("x.b", "b", v1alpha1.Filtered),
		reporttest.Unstarted("x.c", "c", v1alpha1.Filtered),
		reporttest.Unstarted("x.d", "d", v1alpha1.Filtered),
		reporttest.Unstarted("x.e", "e", v1alpha1.Known),
		reporttest.Unstarted("x.f", "f", v1alpha1.Outdated),
	))
	elsewhere := reporttest.Run("three", 0, reporttest.OnCluster("b",
		reporttest.Ran("x.a", "a", v1alpha1.Passed),
		reporttest.Unstarted("x.b", "b", v1alpha1.Filtered),
		reporttest.Unstarted("x.c", "c", v1alpha1.Filtered),
		reporttest.Unstarted("x.d", "d", v1alpha1.Filtered),
		reporttest.Unstarted("x.e", "e", v1alpha1.Filtered),
		reporttest.Unstarted("x.f", "f", v1alpha1.Filtered),
	))

	merged, err := merge.Reports(asMade(second), asMade(first), asMade(elsewhere))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.RunID).To(Equal("one+three+two"))
	g.Expect(merged.Interrupted).To(BeTrue())
	g.Expect(merged.Start).To(Equal(first.Start))
	g.Expect(merged.End).To(Equal(second.End))
	g.Expect(merged.Clusters).To(HaveLen(2))
	var outcomes []string
	for _, result := range merged.Clusters[0].Results {
		outcomes = append(outcomes, result.ID+" "+string(result.Outcome))
	}
	g.Expect(outcomes).To(Equal([]string{"x.a passed", "x.b failed", "x.c skipped", "x.d filtered", "x.e known", "x.f outdated"}))
}

func TestReports_ClusterProperties(t *testing.T) {
	g := NewWithT(t)
	said := v1alpha1.Cluster{Counts: v1alpha1.Counts{}}
	for i := range reflect.TypeOf(said).NumField() {
		if field := reflect.ValueOf(&said).Elem().Field(i); field.Kind() == reflect.String {
			field.SetString("what is said of its " + reflect.TypeOf(said).Field(i).Name)
		}
	}
	other := reporttest.Run("two", 0, v1alpha1.Cluster{Name: said.Name})

	merged, err := merge.Reports(asMade(reporttest.Run("one", 0, said)), asMade(other))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.Clusters).To(ConsistOf(said))
}

func TestReports_LeftOut(t *testing.T) {
	g := NewWithT(t)
	nodes, roles := v1alpha1.LeftOut{Cluster: "one", Resource: "nodes"}, v1alpha1.LeftOut{Cluster: "one", Resource: "roles"}
	one, other := reporttest.Run("one", 0, v1alpha1.Cluster{Name: "one"}), reporttest.Run("two", 0, v1alpha1.Cluster{Name: "one"})
	one.LeftOut, other.LeftOut = []v1alpha1.LeftOut{nodes}, []v1alpha1.LeftOut{nodes, roles}

	merged, err := merge.Reports(asMade(one), asMade(other))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.LeftOut).To(Equal([]v1alpha1.LeftOut{nodes, roles}))
}

func TestReports_Mismatched(t *testing.T) {
	passed := reporttest.Run("one", 0, reporttest.OnCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Passed)))
	failed := reporttest.Run("two", 0, reporttest.OnCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Failed)))
	otherRunner := reporttest.Run("two", 0, reporttest.OnCluster("b"))
	otherRunner.Runner = "v2"
	of := func(file string, results ...v1alpha1.Result) report.Source {
		return asFile(file, reporttest.Run(file, 0, reporttest.OnCluster(file, results...)))
	}
	a, b := reporttest.Ran("x.a", "a", v1alpha1.Passed), reporttest.Ran("x.b", "b", v1alpha1.Passed)
	reworded, relevelled := reporttest.Ran("x.a", "another", v1alpha1.Passed), a
	relevelled.Level = v1alpha1.Observed
	otherVersion := reporttest.Run("two", 0, v1alpha1.Cluster{Name: "a", ServerVersion: "v1.30.0"})
	shard := func(id, shard, cluster string) report.Source {
		r := reporttest.Run(id, 0, reporttest.OnCluster(cluster))
		r.Shard = shard
		return asMade(r)
	}
	for name, c := range map[string]struct {
		reports []report.Source
		want    string
	}{
		"nothing":           {nil, "merge reports: none was given"},
		"the same twice":    {[]report.Source{asFile("one.json", passed), asFile("two.json", failed)}, `merge one.json and two.json: both ran x.a on cluster "a"; merge shards of one run, and compare runs of the same`},
		"not from files":    {[]report.Source{asMade(passed), asMade(failed)}, `merge run "one" and run "two": both ran x.a`},
		"other runner":      {[]report.Source{asMade(passed), asMade(otherRunner)}, `made by runners "v1" (strict: false) and "v2" (strict: false)`},
		"more behaviors":    {[]report.Source{of("1.json", a), of("2.json", a, b)}, `merge 1.json and 2.json: their catalogs of behaviors differ: only 2.json has x.b; merge`},
		"other behaviors":   {[]report.Source{of("1.json", a), of("2.json", b)}, `only 1.json has x.a; only 2.json has x.b; merge`},
		"another statement": {[]report.Source{of("1.json", a), of("2.json", reworded)}, `they differ in the level or the statement of x.a; merge`},
		"another level":     {[]report.Source{of("1.json", a), of("2.json", relevelled)}, `they differ in the level or the statement of x.a; merge`},
		"other version":     {[]report.Source{asMade(passed), asMade(otherVersion)}, `merge run "two": its cluster "a" runs v1.30.0, in the other reports it runs v1.36.3`},
		"missing shards":    {[]report.Source{shard("one", "1/4", "a"), shard("two", "3/4", "a")}, `of cluster "a" shard 2, 4 of 4 is missing`},
		"double shard":      {[]report.Source{shard("one", "1/2", "a"), shard("two", "1/2", "a")}, `merge run "one" and run "two": both are shard 1/2 of cluster "a"`},
		"other shards":      {[]report.Source{shard("one", "1/2", "a"), shard("two", "2/3", "a")}, `merge run "two": it is shard 2/3 of cluster "a", and others are of 2`},
		"broken shard":      {[]report.Source{shard("one", "7/2", "a")}, `merge run "one": its shard: invalid shard "7/2": it must be N/M, for example 2/5 for the second of five parts`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := merge.Reports(c.reports...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestReports_SameShard(t *testing.T) {
	var shards []report.Source
	for _, cluster := range []string{"a", "b"} {
		for _, shard := range []string{"1/2", "2/2"} {
			r := reporttest.Run(cluster+shard, 0, reporttest.OnCluster(cluster))
			r.Shard = shard
			shards = append(shards, asMade(r))
		}
	}
	merged, err := merge.Reports(shards...)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.Shard).To(BeEmpty())
	g.Expect(merged.Shards).To(Equal([]string{"1/2", "2/2"}))
	again, err := merge.Reports(asMade(merged))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Shards).To(Equal(merged.Shards))
}

func TestReports_ClusterProblem(t *testing.T) {
	g := NewWithT(t)
	dead := reporttest.Run("two", time.Second, v1alpha1.Cluster{Name: "a", Problem: "connection refused", Results: []v1alpha1.Result{
		reporttest.Because(reporttest.Unstarted("x.a", "a", v1alpha1.Errored), "connection refused"),
		reporttest.Because(reporttest.Unstarted("x.b", "b", v1alpha1.Errored), "connection refused"),
	}})
	tested := reporttest.OnCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("x.b", "b", v1alpha1.Filtered))
	merged, err := merge.Reports(asMade(reporttest.Run("one", 0, tested)), asMade(dead))
	g.Expect(err).NotTo(HaveOccurred())
	verdict, _ := merged.Verdict(v1alpha1.SubjectCluster)
	g.Expect(verdict).To(And(HaveField("Conclusion", v1alpha1.RunError), HaveField("Reason", ContainSubstring("connection refused"))))
	g.Expect(merged.Clusters[0].Counts).To(Equal(v1alpha1.Counts{v1alpha1.Passed: 1, v1alpha1.Errored: 1}))
}
