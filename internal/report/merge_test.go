package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// run is a report of one cluster.
func run(id string, start time.Duration, cluster report.Cluster) report.Report {
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: id, Runner: "v1",
		Start: reporttest.Start.Add(start), End: reporttest.Start.Add(start + time.Minute), Clusters: []report.Cluster{cluster},
	}
}

func onCluster(name string, results ...report.Result) report.Cluster {
	return report.Cluster{Name: name, ServerVersion: "v1.36.3", Results: results}
}

// asFile is the report as if it had been read from a file.
func asFile(t *testing.T, name string, r report.Report) report.Report {
	t.Helper()
	var content bytes.Buffer
	if err := report.WriteJSON(&content, r); err != nil {
		t.Fatal(err)
	}
	read, err := report.ReadJSON(name, &content)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestMergeJoinsShards(t *testing.T) {
	g := NewWithT(t)
	second := run("two", time.Minute, onCluster("a",
		reporttest.Unstarted("x.a", "a", report.Filtered),
		reporttest.Ran("x.b", "b", report.Failed),
		reporttest.Because(reporttest.Unstarted("x.c", "c", report.Skipped), "no node"),
	))
	second.Interrupted = true
	first := run("one", 0, onCluster("a",
		reporttest.Ran("x.a", "a", report.Passed),
		reporttest.Unstarted("x.b", "b", report.Filtered),
		reporttest.Unstarted("x.c", "c", report.Filtered),
		reporttest.Unstarted("x.d", "d", report.Filtered),
	))
	elsewhere := run("three", 0, onCluster("b", reporttest.Ran("x.a", "a", report.Passed)))

	merged, err := report.Merge(second, first, elsewhere)
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
	passed := run("one", 0, onCluster("a", reporttest.Ran("x.a", "a", report.Passed)))
	failed := run("two", 0, onCluster("a", reporttest.Ran("x.a", "a", report.Failed)))
	otherRunner := run("two", 0, onCluster("b"))
	otherRunner.Runner = "v2"
	otherVersion := run("two", 0, report.Cluster{Name: "a", ServerVersion: "v1.30.0"})
	shard := func(id, shard, cluster string) report.Report {
		r := run(id, 0, onCluster(cluster))
		r.Shard = shard
		return r
	}
	for name, c := range map[string]struct {
		reports []report.Report
		want    string
	}{
		"nothing":        {nil, "merge reports: none was given"},
		"the same twice": {[]report.Report{asFile(t, "one.json", passed), asFile(t, "two.json", failed)}, `merge one.json and two.json: both ran x.a on cluster "a"; merge shards of one run, and compare runs of the same`},
		"not from files": {[]report.Report{passed, failed}, `merge run "one" and run "two": both ran x.a`},
		"other runner":   {[]report.Report{passed, otherRunner}, `made by runners "v1" (strict: false) and "v2" (strict: false)`},
		"other version":  {[]report.Report{passed, otherVersion}, `merge run "two": its cluster "a" runs v1.30.0, in the other reports it runs v1.36.3`},
		"missing shards": {[]report.Report{shard("one", "1/4", "a"), shard("two", "3/4", "a")}, `of cluster "a" shard 2, 4 of 4 is missing`},
		"double shard":   {[]report.Report{shard("one", "1/2", "a"), shard("two", "1/2", "a")}, `merge run "one" and run "two": both are shard 1/2 of cluster "a"`},
		"other shards":   {[]report.Report{shard("one", "1/2", "a"), shard("two", "2/3", "a")}, `merge run "two": it is shard 2/3 of cluster "a", and others are of 2`},
		"broken shard":   {[]report.Report{shard("one", "7/2", "a")}, `its "shard" is "7/2", not a number of a number like 2/5`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.Merge(c.reports...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestMergeTakesTheSameShardOfSeveralClusters(t *testing.T) {
	var shards []report.Report
	for _, cluster := range []string{"a", "b"} {
		for _, shard := range []string{"1/2", "2/2"} {
			r := run(cluster+shard, 0, onCluster(cluster))
			r.Shard = shard
			shards = append(shards, r)
		}
	}
	_, err := report.Merge(shards...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestMergeKeepsAClustersProblem(t *testing.T) {
	g := NewWithT(t)
	dead := run("two", time.Second, report.Cluster{Name: "a", Problem: "connection refused", Results: []report.Result{
		reporttest.Because(reporttest.Unstarted("x.a", "a", report.Errored), "connection refused"),
		reporttest.Because(reporttest.Unstarted("x.b", "b", report.Errored), "connection refused"),
	}})
	merged, err := report.Merge(run("one", 0, onCluster("a", reporttest.Ran("x.a", "a", report.Passed))), dead)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.Verdict().Conclusion).To(Equal(report.RunError))
	g.Expect(merged.Clusters[0].Count()).To(Equal(map[report.Outcome]int{report.Passed: 1, report.Errored: 1}))
	g.Expect(strings.Contains(merged.Verdict().Reason, "connection refused")).To(BeTrue())
}
