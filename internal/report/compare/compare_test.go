package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// day is the time between the reports of a history.
const day = 24 * time.Hour

// over returns the history of reports, which are a day apart in their order.
func over(t *testing.T, reports ...v1alpha1.Report) compare.History {
	t.Helper()
	sources := make([]report.Source, len(reports))
	for i, r := range reports {
		r.RunID, r.Start = fmt.Sprintf("dc%d", i+1), reporttest.Start.Add(time.Duration(i)*day)
		sources[i] = report.Source{Report: r, File: fmt.Sprintf("%d.json", i+1)}
	}
	rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	ordered, err := compare.ByStart(sources)
	if err != nil {
		t.Fatal(err)
	}
	h, err := compare.Over(ordered, compare.DefaultFactor)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// of returns a report of one cluster with one behavior; an empty outcome omits it.
func of(outcome v1alpha1.Outcome) v1alpha1.Report {
	if outcome == "" {
		return reporttest.Run("r", 0, reporttest.OnCluster("a"))
	}
	return reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", outcome)))
}

// outcomes returns a report of one cluster for each outcome of one behavior; an empty outcome omits it.
func outcomes(series ...v1alpha1.Outcome) []v1alpha1.Report {
	reports := make([]v1alpha1.Report, len(series))
	for i, outcome := range series {
		reports[i] = of(outcome)
	}
	return reports
}

func TestHistoryListsEveryChange(t *testing.T) {
	const failing, outdated, fixed, lost, tested = "Failing", "Outdated known failures", "Passing again", "No longer tested", "Newly tested"
	for _, c := range []struct {
		old, new  v1alpha1.Outcome
		strict    bool
		list      string
		regressed bool
	}{
		{v1alpha1.Passed, v1alpha1.Failed, false, failing, true},
		{v1alpha1.Passed, v1alpha1.Errored, false, lost, true},
		{v1alpha1.Deviated, v1alpha1.Failed, false, failing, true},
		{v1alpha1.Deviated, v1alpha1.Errored, false, lost, true},
		{v1alpha1.Deviated, v1alpha1.Errored, true, lost, false},
		{v1alpha1.Passed, v1alpha1.Deviated, true, failing, true},
		{v1alpha1.Deviated, v1alpha1.Deviated, true, failing, false},
		{v1alpha1.Passed, v1alpha1.Deviated, false, failing, false},
		{v1alpha1.Failed, v1alpha1.Passed, false, fixed, false},
		{v1alpha1.Deviated, v1alpha1.Passed, false, fixed, false},
		{v1alpha1.Passed, v1alpha1.Skipped, false, lost, false},
		{v1alpha1.Failed, v1alpha1.Filtered, false, lost, false},
		{v1alpha1.Passed, v1alpha1.Interrupted, false, lost, false},
		{v1alpha1.Passed, "", false, lost, false},
		{v1alpha1.Failed, v1alpha1.Errored, false, lost, false},
		{v1alpha1.Skipped, v1alpha1.Failed, false, failing, false},
		{v1alpha1.Errored, v1alpha1.Passed, false, tested, false},
		{"", v1alpha1.Passed, false, tested, false},
		{v1alpha1.Passed, v1alpha1.Passed, false, "", false},
		{v1alpha1.Failed, v1alpha1.Failed, false, failing, false},
		{v1alpha1.Skipped, v1alpha1.Filtered, false, "", false},
		{v1alpha1.Skipped, "", false, "", false},
		{v1alpha1.Passed, v1alpha1.Known, false, failing, false},
		{v1alpha1.Deviated, v1alpha1.Known, false, failing, false},
		{v1alpha1.Outdated, v1alpha1.Known, false, failing, false},
		{v1alpha1.Failed, v1alpha1.Known, false, failing, false},
		{v1alpha1.Known, v1alpha1.Known, false, failing, false},
		{v1alpha1.Known, v1alpha1.Failed, false, failing, true},
		{v1alpha1.Known, v1alpha1.Deviated, false, failing, false},
		{v1alpha1.Known, v1alpha1.Deviated, true, failing, true},
		{v1alpha1.Known, v1alpha1.Errored, false, lost, false},
		{v1alpha1.Known, v1alpha1.Skipped, false, lost, false},
		{v1alpha1.Known, v1alpha1.Passed, false, fixed, false},
		{v1alpha1.Known, v1alpha1.Outdated, false, outdated, true},
		{v1alpha1.Passed, v1alpha1.Outdated, false, outdated, true},
		{v1alpha1.Outdated, v1alpha1.Failed, false, failing, true},
		{v1alpha1.Outdated, v1alpha1.Passed, false, "", false},
		{v1alpha1.Skipped, v1alpha1.Known, false, failing, false},
	} {
		t.Run(fmt.Sprint(c.old, " ", c.new, c.strict), func(t *testing.T) {
			g := NewWithT(t)
			after := of(c.new)
			after.Strict = c.strict
			h := over(t, of(c.old), after)
			g.Expect(h.HasRegressed()).To(Equal(c.regressed))
			g.Expect(h.HasLost()).To(Equal(c.list == lost))
			if c.list == "" {
				g.Expect(h.Lists()).To(BeEmpty())
				return
			}
			g.Expect(h.Lists()).To(ConsistOf(And(HaveField("Title", c.list), HaveField("Series", HaveLen(1)))))
		})
	}
}

func TestHistory_Since(t *testing.T) {
	const p, f, k, d, o, s, e, absent = v1alpha1.Passed, v1alpha1.Failed, v1alpha1.Known, v1alpha1.Deviated, v1alpha1.Outdated, v1alpha1.Skipped, v1alpha1.Errored, v1alpha1.Outcome("")
	for _, c := range []struct {
		series []v1alpha1.Outcome
		strict bool
		list   string
		want   string
		// regressed and lost are what the exit code depends on.
		regressed, lost bool
	}{
		{[]v1alpha1.Outcome{p, p, p}, false, "", "", false, false},
		{[]v1alpha1.Outcome{s, absent, s}, false, "", "", false, false},
		{[]v1alpha1.Outcome{p, p, f, f}, false, "Failing", "failed since report 3 (2026-03-06, v1.36.3), passed in report 2 (2026-03-05, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{p, s, f, e, f}, false, "Failing", "failed since report 3 (2026-03-06, v1.36.3), passed in report 1 (2026-03-04, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{absent, f, f}, false, "Failing", "failed, did not pass in any report since report 2 (2026-03-05, v1.36.3)", false, false},
		{[]v1alpha1.Outcome{p, f, p, f}, false, "Failing", "failed since report 4 (2026-03-07, v1.36.3), passed in report 3 (2026-03-06, v1.36.3); changed 3 times", true, false},
		{[]v1alpha1.Outcome{f, f, p}, false, "Passing again", "passed since report 3 (2026-03-06, v1.36.3), failed in report 2 (2026-03-05, v1.36.3)", false, false},
		{[]v1alpha1.Outcome{p, f, p}, false, "Passing again", "passed since report 3 (2026-03-06, v1.36.3), failed in report 2 (2026-03-05, v1.36.3); changed 2 times", false, false},
		{[]v1alpha1.Outcome{p, p, k}, false, "Failing", "known since report 3 (2026-03-06, v1.36.3), passed in report 2 (2026-03-05, v1.36.3)", false, false},
		{[]v1alpha1.Outcome{k, k, f}, false, "Failing", "failed, did not pass in any report since report 1 (2026-03-04, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{d, d, f}, false, "Failing", "failed, did not pass in any report since report 1 (2026-03-04, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{p, p, d}, false, "Failing", "deviated since report 3 (2026-03-06, v1.36.3), passed in report 2 (2026-03-05, v1.36.3)", false, false},
		{[]v1alpha1.Outcome{p, p, d}, true, "Failing", "deviated since report 3 (2026-03-06, v1.36.3), passed in report 2 (2026-03-05, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{k, k, o}, false, "Outdated known failures", "outdated since report 3 (2026-03-06, v1.36.3), known in report 2 (2026-03-05, v1.36.3)", true, false},
		{[]v1alpha1.Outcome{absent, s, p}, false, "Newly tested", "passed since report 3 (2026-03-06, v1.36.3)", false, false},
		{[]v1alpha1.Outcome{p, s, absent}, false, "No longer tested", "not tested since report 2 (2026-03-05, v1.36.3), passed in report 1 (2026-03-04, v1.36.3)", false, true},
		{[]v1alpha1.Outcome{p, p, e}, false, "No longer tested", "errored since report 3 (2026-03-06, v1.36.3), passed in report 2 (2026-03-05, v1.36.3)", true, true},
		{[]v1alpha1.Outcome{p, f, e}, false, "No longer tested", "errored since report 3 (2026-03-06, v1.36.3), failed in report 2 (2026-03-05, v1.36.3)", false, true},
	} {
		t.Run(fmt.Sprint(c.series, c.strict), func(t *testing.T) {
			g := NewWithT(t)
			reports := outcomes(c.series...)
			reports[len(reports)-1].Strict = c.strict
			h := over(t, reports...)
			g.Expect(h.HasRegressed()).To(Equal(c.regressed))
			g.Expect(h.HasLost()).To(Equal(c.lost))
			lists := h.Lists()
			if c.list == "" {
				g.Expect(lists).To(BeEmpty())
				return
			}
			g.Expect(lists).To(HaveLen(1))
			g.Expect(lists[0].Title).To(Equal(c.list))
			g.Expect(lists[0].Series).To(HaveLen(1))
			g.Expect(lists[0].Series[0].Outcomes).To(Equal(c.series))
			g.Expect(h.Change(lists[0].Series[0])).To(Equal(c.want))
		})
	}
}

func TestHistory_Kubectl(t *testing.T) {
	with := func(cluster, kubectl v1alpha1.Outcome) v1alpha1.Report {
		client := reporttest.Unstarted("kubectl.a", "a", kubectl)
		client.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
		return reporttest.Run("r", 0, reporttest.OnCluster("a", client, reporttest.Unstarted("x.a", "a", cluster)))
	}
	for _, test := range []struct {
		after            v1alpha1.Report
		cluster, kubectl bool
		line             string
	}{
		{with(v1alpha1.Passed, v1alpha1.Passed), false, false, "Nothing changed."},
		{with(v1alpha1.Passed, v1alpha1.Failed), false, true, "1 behavior of kubectl regressed, none of a cluster."},
		{with(v1alpha1.Failed, v1alpha1.Passed), true, false, "1 behavior regressed."},
		{with(v1alpha1.Failed, v1alpha1.Failed), true, true, "1 behavior regressed, and 1 behavior of kubectl."},
		{with(v1alpha1.Passed, v1alpha1.Outdated), false, true, "Nothing regressed, but known failures are outdated."},
	} {
		g := NewWithT(t)
		h := over(t, with(v1alpha1.Passed, v1alpha1.Passed), test.after)
		g.Expect([]bool{h.HasRegressed(), h.KubectlHasRegressed()}).To(Equal([]bool{test.cluster, test.kubectl}))
		g.Expect(h.Conclusion()).To(Equal(test.line))
	}
}

func TestHistory_Clusters(t *testing.T) {
	g := NewWithT(t)
	passed, failed := reporttest.Unstarted("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("x.a", "a", v1alpha1.Failed)
	upgraded := over(t, reporttest.Run("", 0, reporttest.OnCluster("v1.35", passed)), reporttest.Run("", 0, reporttest.OnCluster("v1.36", passed)), reporttest.Run("", 0, reporttest.OnCluster("v1.37", failed)))
	g.Expect(upgraded.Failing).To(ConsistOf(And(HaveField("Cluster", "v1.37"), HaveField("Since", 3))))

	several := reporttest.Run("", 0, reporttest.OnCluster("a", passed))
	several.Clusters = append(several.Clusters, reporttest.OnCluster("b", passed))
	fleet := over(t, several, several, reporttest.Run("", 0, reporttest.OnCluster("b", failed)))
	g.Expect(fleet.Failing).To(ConsistOf(HaveField("Cluster", "b")))
	g.Expect(fleet.Gone).To(Equal([]string{"a"}))
	g.Expect(fleet.HasLost()).To(BeTrue())
	g.Expect(fleet.Conclusion()).To(Equal("1 behavior regressed. No longer tested: 1 of the clusters."))

	added := over(t, reporttest.Run("", 0, reporttest.OnCluster("a", passed)), several)
	g.Expect(added.New).To(Equal([]string{"b"}))
	g.Expect(added.HasLost()).To(BeFalse())
	g.Expect(added.Remarks()).To(Equal([]string{"Cluster b is only in the newest report."}))
}

func TestHistory_DeadCluster(t *testing.T) {
	g := NewWithT(t)
	reports := append(outcomes(v1alpha1.Passed, v1alpha1.Passed), reporttest.Run("", 0, v1alpha1.Cluster{Name: "a", Problem: "connection refused"}))
	h := over(t, reports...)
	g.Expect(h.HasRegressed()).To(BeTrue())
	g.Expect(h.Lost).To(ConsistOf(HaveField("Reason", "connection refused")))
}

func TestHistory_Invalid(t *testing.T) {
	g := NewWithT(t)
	one := report.Source{Report: reporttest.Sample(), File: "one.json"}
	again := report.Source{Report: reporttest.Sample(), File: "again.json"}
	_, err := compare.ByStart([]report.Source{one, again})
	g.Expect(err).To(MatchError("one.json and again.json are the same run: name each report once"))
	other := report.Source{Report: reporttest.Run("r", day, reporttest.OnCluster("other")), File: "other.json"}
	_, err = compare.Over([]report.Source{one, other}, compare.DefaultFactor)
	g.Expect(err).To(MatchError(ContainSubstring("no two of the reports have a cluster in common")))
}

func TestHistoryToleratesSomeSlowness(t *testing.T) {
	timed := func(seconds ...float64) compare.History {
		var reports []v1alpha1.Report
		for _, took := range seconds {
			result := reporttest.Unstarted("x.a", "a", v1alpha1.Passed)
			result.Seconds = took
			reports = append(reports, reporttest.Run("r", 0, reporttest.OnCluster("a", result)))
		}
		return over(t, reports...)
	}
	g := NewWithT(t)
	g.Expect(timed(1, 2).Slower).To(BeEmpty())
	g.Expect(timed(0.1, 0.4).Slower).To(BeEmpty())
	g.Expect(timed(1, 3, 2).Slower).To(BeEmpty(), "the last one before counts")
	slower := timed(1, 1, 0, 2.1)
	g.Expect(slower.Slower).To(Equal([]compare.Slowdown{{Cluster: "a", Behavior: "x.a", OldSeconds: 1, NewSeconds: 2.1, Before: 2}}))
	g.Expect(slower.HasRegressed()).To(BeFalse(), "durations are no promise")
	g.Expect(slower.Slower[0].Change()).To(Equal("1.00 s -> 2.10 s (2.1 times) since report 2"))
}

func TestHistoryComparesTheMediansOfManyDeletions(t *testing.T) {
	// deletions returns foreground deletes with multiples of 41 ms.
	deletions := func(count int, times time.Duration) v1alpha1.Report {
		var results []v1alpha1.Result
		for n := range count {
			result := reporttest.Ran(fmt.Sprintf("x.n%d", n), "n", v1alpha1.Passed)
			for i := range result.Timeline.Events {
				event := &result.Timeline.Events[i]
				event.At = reporttest.Start.Add(event.At.Sub(reporttest.Start) * times)
			}
			results = append(results, result)
		}
		return figures.Measure(reporttest.Run("r", 0, reporttest.OnCluster("a", results...)))
	}
	g := NewWithT(t)
	g.Expect(over(t, deletions(9, 1), deletions(9, 10)).Slower).To(BeEmpty(), "too few")
	g.Expect(over(t, deletions(10, 2), deletions(10, 3)).Slower).To(BeEmpty(), "within the factor")
	g.Expect(over(t, deletions(10, 1), deletions(10, 10)).Slower).To(Equal([]compare.Slowdown{
		{Cluster: "a", Figure: "Foreground, 1 level of dependents: waiting to gone", OldSeconds: 0.041, NewSeconds: 0.41, Before: 1},
	}))
}

func TestHistory_Text(t *testing.T) {
	g := NewWithT(t)
	reports := outcomes(v1alpha1.Passed, v1alpha1.Passed, v1alpha1.Failed)
	reports[2].Clusters[0].Results[0] = reporttest.Failing(reports[2].Clusters[0].Results[0])
	reports[2].Clusters[0].ServerVersion = "v1.37.2"
	slow := reporttest.Unstarted("x.b", "b", v1alpha1.Passed)
	for i := range reports {
		slow.Seconds = []float64{1, 1.5, 30}[i]
		reports[i].Clusters[0].Results = append(reports[i].Clusters[0].Results, slow)
	}
	reports[0].Clusters = append(reports[0].Clusters, reporttest.OnCluster("b"))
	var text strings.Builder
	g.Expect(compare.Write(&text, over(t, reports...))).To(Succeed())
	g.Expect(text.String()).To(Equal(`1: 1.json (run dc1 of 2026-03-04 05:06:07 by runner v1)
2: 2.json (run dc2 of 2026-03-05 05:06:07 by runner v1)
3: 3.json (run dc3 of 2026-03-06 05:06:07 by runner v1)

Failing (1)
  x.a on a: failed since report 3 (2026-03-06, v1.37.2), passed in report 2 (2026-03-05, v1.36.3): Expected the owner to be deleted last <string>: DELETED owner to come after <string>: DELETED child

Slower (1)
  x.b on a: 1.50 s -> 30.0 s (20.0 times) since report 2

Cluster b is not in the newest report.
1 behavior regressed. No longer tested: 1 of the clusters.
`))
}

func TestHistory_TerminalEscapes(t *testing.T) {
	written := func(text string) string {
		before, after := reporttest.WithText(text), reporttest.WithText(text)
		before.Clusters[0].Results[1].Outcome = v1alpha1.Passed
		var written bytes.Buffer
		if err := compare.Write(&written, over(t, before, before, after)); err != nil {
			t.Fatal(err)
		}
		return written.String()
	}
	lines := strings.Count(written("harmless"), "\n")
	for _, hostile := range reporttest.Hostile {
		text := written(hostile)
		if count := strings.Count(text, "\n"); count != lines {
			t.Errorf("%q makes %d lines of %d:\n%s", hostile, count, lines, text)
		}
		if strings.ContainsAny(text, "\x1b\u009b\x00\u202e\r") {
			t.Errorf("%q brings a character out that a terminal obeys", hostile)
		}
	}
}

func TestHistory_JSON(t *testing.T) {
	g := NewWithT(t)
	encoded, err := json.Marshal(over(t, outcomes(v1alpha1.Passed, v1alpha1.Failed)...))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(encoded)).To(And(ContainSubstring(`"outcomes":["passed","failed"]`), ContainSubstring(`"since":2,"before":1`)))
}
