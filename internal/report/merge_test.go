package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// run is a report of one cluster.
func run(id string, start time.Duration, cluster v1alpha1.Cluster) v1alpha1.Report {
	return v1alpha1.Report{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, RunID: id, Runner: "v1",
		Start: reporttest.Start.Add(start), End: reporttest.Start.Add(start + time.Minute), Clusters: []v1alpha1.Cluster{cluster},
	}
}

func onCluster(name string, results ...v1alpha1.Result) v1alpha1.Cluster {
	return v1alpha1.Cluster{Name: name, ServerVersion: "v1.36.3", Results: results}
}

// asFile is the report as if it had been read from a file.
func asFile(t *testing.T, name string, r v1alpha1.Report) report.Source {
	t.Helper()
	var content bytes.Buffer
	if err := report.WriteJSON(&content, r); err != nil {
		t.Fatal(err)
	}
	read, err := report.ReadJSON(name, &content)
	if err != nil {
		t.Fatal(err)
	}
	return report.Source{Report: read, File: name}
}

func asMade(r v1alpha1.Report) report.Source { return report.Source{Report: r} }

func TestMergeJoinsShards(t *testing.T) {
	g := NewWithT(t)
	second := run("two", time.Minute, onCluster("a",
		reporttest.Unstarted("x.a", "a", v1alpha1.Filtered),
		reporttest.Ran("x.b", "b", v1alpha1.Failed),
		reporttest.Because(reporttest.Unstarted("x.c", "c", v1alpha1.Skipped), "no node"),
	))
	second.Interrupted = true
	first := run("one", 0, onCluster("a",
		reporttest.Ran("x.a", "a", v1alpha1.Passed),
		reporttest.Unstarted("x.b", "b", v1alpha1.Filtered),
		reporttest.Unstarted("x.c", "c", v1alpha1.Filtered),
		reporttest.Unstarted("x.d", "d", v1alpha1.Filtered),
	))
	elsewhere := run("three", 0, onCluster("b", reporttest.Ran("x.a", "a", v1alpha1.Passed)))

	merged, err := report.Merge(asMade(second), asMade(first), asMade(elsewhere))
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
	g.Expect(outcomes).To(Equal([]string{"x.a passed", "x.b failed", "x.c skipped", "x.d filtered"}))
}

func TestMergeRefusesWhatIsNoShardOfOneRun(t *testing.T) {
	passed := run("one", 0, onCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Passed)))
	failed := run("two", 0, onCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Failed)))
	otherRunner := run("two", 0, onCluster("b"))
	otherRunner.Runner = "v2"
	otherVersion := run("two", 0, v1alpha1.Cluster{Name: "a", ServerVersion: "v1.30.0"})
	shard := func(id, shard, cluster string) report.Source {
		r := run(id, 0, onCluster(cluster))
		r.Shard = shard
		return asMade(r)
	}
	for name, c := range map[string]struct {
		reports []report.Source
		want    string
	}{
		"nothing":        {nil, "merge reports: none was given"},
		"the same twice": {[]report.Source{asFile(t, "one.json", passed), asFile(t, "two.json", failed)}, `merge one.json and two.json: both ran x.a on cluster "a"; merge shards of one run, and compare runs of the same`},
		"not from files": {[]report.Source{asMade(passed), asMade(failed)}, `merge run "one" and run "two": both ran x.a`},
		"other runner":   {[]report.Source{asMade(passed), asMade(otherRunner)}, `made by runners "v1" (strict: false) and "v2" (strict: false)`},
		"other version":  {[]report.Source{asMade(passed), asMade(otherVersion)}, `merge run "two": its cluster "a" runs v1.30.0, in the other reports it runs v1.36.3`},
		"missing shards": {[]report.Source{shard("one", "1/4", "a"), shard("two", "3/4", "a")}, `of cluster "a" shard 2, 4 of 4 is missing`},
		"double shard":   {[]report.Source{shard("one", "1/2", "a"), shard("two", "1/2", "a")}, `merge run "one" and run "two": both are shard 1/2 of cluster "a"`},
		"other shards":   {[]report.Source{shard("one", "1/2", "a"), shard("two", "2/3", "a")}, `merge run "two": it is shard 2/3 of cluster "a", and others are of 2`},
		"broken shard":   {[]report.Source{shard("one", "7/2", "a")}, `its "shard" is "7/2", not a number of a number like 2/5`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.Merge(c.reports...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestMergeTakesTheSameShardOfSeveralClusters(t *testing.T) {
	var shards []report.Source
	for _, cluster := range []string{"a", "b"} {
		for _, shard := range []string{"1/2", "2/2"} {
			r := run(cluster+shard, 0, onCluster(cluster))
			r.Shard = shard
			shards = append(shards, asMade(r))
		}
	}
	_, err := report.Merge(shards...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestMergeKeepsAClustersProblem(t *testing.T) {
	g := NewWithT(t)
	dead := run("two", time.Second, v1alpha1.Cluster{Name: "a", Problem: "connection refused", Results: []v1alpha1.Result{
		reporttest.Because(reporttest.Unstarted("x.a", "a", v1alpha1.Errored), "connection refused"),
		reporttest.Because(reporttest.Unstarted("x.b", "b", v1alpha1.Errored), "connection refused"),
	}})
	merged, err := report.Merge(asMade(run("one", 0, onCluster("a", reporttest.Ran("x.a", "a", v1alpha1.Passed)))), asMade(dead))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.VerdictOf(merged).Conclusion).To(Equal(report.RunError))
	g.Expect(merged.Clusters[0].Count()).To(Equal(map[v1alpha1.Outcome]int{v1alpha1.Passed: 1, v1alpha1.Errored: 1}))
	g.Expect(strings.Contains(report.VerdictOf(merged).Reason, "connection refused")).To(BeTrue())
}
