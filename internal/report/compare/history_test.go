package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
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
	h, err := compare.Over(sources, compare.DefaultTolerance, compare.DefaultDrift)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// outcomes returns a report of one cluster for each outcome of one behavior; an empty outcome omits it.
func outcomes(series ...v1alpha1.Outcome) []v1alpha1.Report {
	reports := make([]v1alpha1.Report, len(series))
	for i, outcome := range series {
		_, reports[i] = two("", outcome)
	}
	return reports
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
	g := NewWithT(t)
	reports := outcomes(v1alpha1.Passed, v1alpha1.Passed, v1alpha1.Failed)
	for _, r := range reports {
		r.Clusters[0].Results[0].Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	}
	h := over(t, reports...)
	g.Expect([]bool{h.HasRegressed(), h.KubectlHasRegressed()}).To(Equal([]bool{false, true}))
	g.Expect(h.Conclusion()).To(Equal("1 behavior of kubectl regressed, none of a cluster."))
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
	_, err := compare.Over([]report.Source{one, again}, compare.DefaultTolerance, compare.DefaultDrift)
	g.Expect(err).To(MatchError("one.json and again.json are the same run: name each report once"))
	other := report.Source{Report: reporttest.Run("r", day, reporttest.OnCluster("other")), File: "other.json"}
	_, err = compare.Over([]report.Source{one, other}, compare.DefaultTolerance, compare.DefaultDrift)
	g.Expect(err).To(MatchError(ContainSubstring("no two of the reports have a cluster in common")))
}

// measured returns a report for each median of a figure, in seconds; 0 omits it. The figure is of enough deletions.
func measured(medians ...float64) []v1alpha1.Report {
	reports := outcomes(slices.Repeat([]v1alpha1.Outcome{v1alpha1.Passed}, len(medians))...)
	for i, value := range medians {
		if value > 0 {
			reports[i].Clusters[0].Figures = []v1alpha1.Figure{{Operation: v1alpha1.BackgroundDelete, Count: 20, P50: value}}
		}
	}
	return reports
}

func TestHistory_Drift(t *testing.T) {
	for _, c := range []struct {
		name    string
		medians []float64
		since   int
	}{
		{"steady", []float64{.040, .041, .039, .042, .040, .041, .040, .039}, 0},
		{"slower for good", []float64{.040, .041, .039, .042, .080, .083, .079, .081}, 5},
		{"faster for good", []float64{.080, .083, .079, .081, .040, .041, .039, .042}, 5},
		{"one slow run", []float64{.040, .041, .039, .042, .200, .041, .039, .042}, 0},
		{"one slow run at the end", []float64{.040, .041, .039, .042, .040, .041, .039, .200}, 0},
		{"slow runs at both ends", []float64{.200, .041, .039, .042, .040, .041, .039, .200}, 0},
		{"an outlier in a drift", []float64{.040, .041, .300, .042, .080, .083, .079, .020, .081}, 5},
		{"noise as large as the drift", []float64{.040, .090, .020, .060, .130, .050, .080, .140}, 0},
		{"slower by less than 10 ms", []float64{.004, .004, .004, .004, .009, .009, .009, .009}, 0},
		{"slower by a third", []float64{.120, .121, .119, .120, .160, .161, .159, .160}, 0},
		{"too few reports", []float64{.040, .041, .400, .410}, 0},
		{"reports without the figure", []float64{.040, 0, .041, .039, 0, .080, .083, .079}, 6},
		{"no longer measured", []float64{.040, .041, .039, .080, .083, .079, 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			h := over(t, measured(c.medians...)...)
			if c.since == 0 {
				g.Expect(h.Drifted).To(BeEmpty())
				return
			}
			g.Expect(h.Drifted).To(ConsistOf(And(HaveField("Since", c.since), HaveField("Figure", "Background: owner gone to dependent gone"))))
		})
	}
}

func TestHistory_SlowerBehaviors(t *testing.T) {
	g := NewWithT(t)
	var reports []v1alpha1.Report
	for _, seconds := range []float64{1, 1.1, .9, 3, 3.1, 2.9} {
		result := reporttest.Unstarted("x.a", "a", v1alpha1.Passed)
		result.Seconds = seconds
		reports = append(reports, reporttest.Run("", 0, reporttest.OnCluster("a", result)))
	}
	h := over(t, reports...)
	g.Expect(h.Drifted).To(HaveLen(1))
	g.Expect(h.Drifted[0].Name()).To(Equal("x.a"))
	g.Expect(h.DriftChange(h.Drifted[0])).To(Equal("1.00 s -> 3.00 s (3.0 times) since report 4 (2026-03-07, v1.36.3): medians of 3 and 3 reports"))
	g.Expect(h.HasRegressed()).To(BeFalse(), "durations are no promise")
}

// With random noise and outliers few figures seem to drift, and most that do drift are found.
func TestHistory_Noise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noisy := func() float64 {
		value := .1 * math.Exp(.1*random.NormFloat64())
		if random.Float64() < .1 {
			value *= 1.5 + 2.5*random.Float64()
		}
		return value
	}
	const histories = 400
	for _, reports := range []int{6, 10, 20, 40} {
		steady, drifted := 0, 0
		for range histories {
			medians := make([]float64, reports)
			for i := range medians {
				medians[i] = noisy()
			}
			steady += len(over(t, measured(medians...)...).Drifted)
			for i := reports / 2; i < reports; i++ {
				medians[i] *= 2
			}
			drifted += len(over(t, measured(medians...)...).Drifted)
		}
		t.Logf("%d reports: %d of %d steady ones seem to drift, %d of the drifted are found", reports, steady, histories, drifted)
		if steady > histories*3/100 || drifted < histories*70/100 {
			t.Errorf("%d reports: %d of %d steady ones seem to drift, and %d of the drifted are found", reports, steady, histories, drifted)
		}
	}
}

func TestHistory_Text(t *testing.T) {
	g := NewWithT(t)
	reports := outcomes(v1alpha1.Passed, v1alpha1.Passed, v1alpha1.Failed)
	reports[2].Clusters[0].Results[0] = reporttest.Failing(reports[2].Clusters[0].Results[0])
	reports[2].Clusters[0].ServerVersion = "v1.37.2"
	var text strings.Builder
	g.Expect(compare.WriteHistory(&text, over(t, reports...))).To(Succeed())
	g.Expect(text.String()).To(Equal(`1: 1.json (run dc1 of 2026-03-04 05:06:07 by runner v1)
2: 2.json (run dc2 of 2026-03-05 05:06:07 by runner v1)
3: 3.json (run dc3 of 2026-03-06 05:06:07 by runner v1)

Failing (1)
  x.a on a: failed since report 3 (2026-03-06, v1.37.2), passed in report 2 (2026-03-05, v1.36.3): Expected the owner to be deleted last <string>: DELETED owner to come after <string>: DELETED child

1 behavior regressed.
`))
}

func TestHistory_TerminalEscapes(t *testing.T) {
	for _, hostile := range reporttest.Hostile {
		before, after := reporttest.WithText(hostile), reporttest.WithText(hostile)
		before.Clusters[0].Results[1].Outcome = v1alpha1.Passed
		var text bytes.Buffer
		if err := compare.WriteHistory(&text, over(t, before, before, after)); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(text.String(), "\x1b\u009b\x00\u202e\r") {
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
