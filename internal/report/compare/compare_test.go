package compare_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/figures"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// two returns two reports of one cluster with one behavior; an empty outcome omits it.
func two(before, after v1alpha1.Outcome) (v1alpha1.Report, v1alpha1.Report) {
	of := func(outcome v1alpha1.Outcome) v1alpha1.Report {
		if outcome == "" {
			return reporttest.Run("r", 0, reporttest.OnCluster("a"))
		}
		return reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", outcome)))
	}
	return of(before), of(after)
}

func TestReports_EveryChange(t *testing.T) {
	for _, c := range []struct {
		old, new v1alpha1.Outcome
		strict   bool
		want     string
	}{
		{v1alpha1.Passed, v1alpha1.Failed, false, "regressed"},
		{v1alpha1.Passed, v1alpha1.Errored, false, "regressed"},
		{v1alpha1.Deviated, v1alpha1.Failed, false, "regressed"},
		{v1alpha1.Passed, v1alpha1.Deviated, true, "regressed"},
		{v1alpha1.Deviated, v1alpha1.Deviated, true, ""},
		{v1alpha1.Passed, v1alpha1.Deviated, false, "deviating"},
		{v1alpha1.Failed, v1alpha1.Passed, false, "fixed"},
		{v1alpha1.Deviated, v1alpha1.Passed, false, "fixed"},
		{v1alpha1.Passed, v1alpha1.Skipped, false, "skipped"},
		{v1alpha1.Failed, v1alpha1.Filtered, false, "skipped"},
		{v1alpha1.Passed, v1alpha1.Interrupted, false, "skipped"},
		{v1alpha1.Passed, "", false, "skipped"},
		{v1alpha1.Failed, v1alpha1.Errored, false, "skipped"},
		{v1alpha1.Skipped, v1alpha1.Failed, false, "tested"},
		{v1alpha1.Errored, v1alpha1.Passed, false, "tested"},
		{"", v1alpha1.Passed, false, "tested"},
		{v1alpha1.Passed, v1alpha1.Passed, false, ""},
		{v1alpha1.Failed, v1alpha1.Failed, false, ""},
		{v1alpha1.Skipped, v1alpha1.Filtered, false, ""},
		{v1alpha1.Skipped, "", false, ""},
		{v1alpha1.Passed, v1alpha1.Known, false, "known"},
		{v1alpha1.Deviated, v1alpha1.Known, false, "known"},
		{v1alpha1.Outdated, v1alpha1.Known, false, "known"},
		{v1alpha1.Failed, v1alpha1.Known, false, ""},
		{v1alpha1.Known, v1alpha1.Known, false, ""},
		{v1alpha1.Known, v1alpha1.Failed, false, "regressed"},
		{v1alpha1.Known, v1alpha1.Deviated, false, ""},
		{v1alpha1.Known, v1alpha1.Errored, false, "skipped"},
		{v1alpha1.Known, v1alpha1.Skipped, false, "skipped"},
		{v1alpha1.Known, v1alpha1.Passed, false, "fixed"},
		{v1alpha1.Known, v1alpha1.Outdated, false, "outdated"},
		{v1alpha1.Passed, v1alpha1.Outdated, false, "outdated"},
		{v1alpha1.Outdated, v1alpha1.Failed, false, "regressed"},
		{v1alpha1.Outdated, v1alpha1.Passed, false, ""},
		{v1alpha1.Skipped, v1alpha1.Known, false, "tested"},
	} {
		before, after := two(c.old, c.new)
		after.Strict = c.strict
		got := compare.Reports(before, after, compare.DefaultTolerance)
		lists := map[string][]compare.Change{
			"regressed": got.Regressed, "deviating": got.Deviating, "fixed": got.Fixed, "skipped": got.NewlySkipped,
			"tested": got.NewlyTested, "slower": got.Slower, "known": got.NewlyKnown, "outdated": got.Outdated,
		}
		for name, list := range lists {
			want := 0
			if name == c.want {
				want = 1
			}
			if len(list) != want {
				t.Errorf("%q to %q (strict: %t): %s has %d changes, not %d", c.old, c.new, c.strict, name, len(list), want)
			}
		}
		if got.HasRegressed() != (c.want == "regressed" || c.want == "outdated") {
			t.Errorf("%q to %q: regressed is %t", c.old, c.new, got.HasRegressed())
		}
	}
}

func TestReports_Kubectl(t *testing.T) {
	of := func(cluster, kubectl v1alpha1.Outcome) v1alpha1.Report {
		client := reporttest.Unstarted("kubectl.a", "a", kubectl)
		client.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
		return reporttest.Run("r", 0, reporttest.OnCluster("a", client, reporttest.Unstarted("x.a", "a", cluster)))
	}
	before := of(v1alpha1.Passed, v1alpha1.Passed)
	for _, test := range []struct {
		after            v1alpha1.Report
		cluster, kubectl bool
		line             string
	}{
		{of(v1alpha1.Passed, v1alpha1.Passed), false, false, "Nothing changed."},
		{of(v1alpha1.Passed, v1alpha1.Failed), false, true, "1 behavior of kubectl regressed, none of a cluster."},
		{of(v1alpha1.Failed, v1alpha1.Passed), true, false, "1 behavior regressed."},
		{of(v1alpha1.Failed, v1alpha1.Failed), true, true, "1 behavior regressed, and 1 behavior of kubectl."},
	} {
		g := NewWithT(t)
		comparison := compare.Reports(before, test.after, compare.DefaultTolerance)
		g.Expect(comparison.HasRegressed()).To(Equal(test.cluster))
		g.Expect(comparison.KubectlHasRegressed()).To(Equal(test.kubectl))
		var text strings.Builder
		g.Expect(compare.Write(&text, comparison)).To(Succeed())
		g.Expect(text.String()).To(HaveSuffix(test.line + "\n"))
	}
}

func TestReports_Tolerance(t *testing.T) {
	timed := func(seconds float64) v1alpha1.Report {
		result := reporttest.Unstarted("x.a", "a", v1alpha1.Passed)
		result.Seconds = seconds
		return reporttest.Run("r", 0, reporttest.OnCluster("a", result))
	}
	g := NewWithT(t)
	g.Expect(compare.Reports(timed(1), timed(2), compare.DefaultTolerance).Slower).To(BeEmpty())
	g.Expect(compare.Reports(timed(0.1), timed(0.4), compare.DefaultTolerance).Slower).To(BeEmpty())
	slower := compare.Reports(timed(1), timed(2.1), compare.DefaultTolerance)
	g.Expect(slower.Slower).To(HaveLen(1))
	g.Expect(slower.HasRegressed()).To(BeFalse())
}

func TestReports_Medians(t *testing.T) {
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
	g.Expect(compare.Reports(deletions(9, 1), deletions(9, 10), compare.DefaultTolerance).Slower).To(BeEmpty(), "too few")
	g.Expect(compare.Reports(deletions(10, 2), deletions(10, 3), compare.DefaultTolerance).Slower).To(BeEmpty(), "within the factor")
	g.Expect(compare.Reports(deletions(10, 1), deletions(10, 10), compare.DefaultTolerance).Slower).To(Equal([]compare.Change{
		{Cluster: "a", Figure: "Foreground, 1 level of dependents: waiting to gone", OldSeconds: 0.041, NewSeconds: 0.41},
	}))
}

func TestReports_ClusterNames(t *testing.T) {
	g := NewWithT(t)
	results := []v1alpha1.Result{reporttest.Unstarted("x.a", "a", v1alpha1.Passed)}
	broken := []v1alpha1.Result{reporttest.Unstarted("x.a", "a", v1alpha1.Failed)}
	several := reporttest.Run("old", 0, reporttest.OnCluster("a", results...))
	several.Clusters = append(several.Clusters, reporttest.OnCluster("b", results...))
	other := reporttest.Run("new", 0, reporttest.OnCluster("b", broken...))
	other.Clusters = append(other.Clusters, reporttest.OnCluster("c", results...))

	upgraded := compare.Reports(reporttest.Run("old", 0, reporttest.OnCluster("v1.35", results...)), reporttest.Run("new", 0, reporttest.OnCluster("v1.36", broken...)), compare.DefaultTolerance)
	g.Expect(upgraded.Regressed).To(HaveLen(1))
	g.Expect(upgraded.OldOnly).To(BeEmpty())

	fleet := compare.Reports(several, other, compare.DefaultTolerance)
	g.Expect(fleet.Regressed).To(HaveLen(1))
	g.Expect(fleet.Regressed[0].Cluster).To(Equal("b"))
	g.Expect(fleet.OldOnly).To(Equal([]string{"a"}))
	g.Expect(fleet.NewOnly).To(Equal([]string{"c"}))
}

func TestReports_DeadCluster(t *testing.T) {
	before := reporttest.Run("old", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed)))
	after := reporttest.Run("new", 0, v1alpha1.Cluster{Name: "a", Problem: "connection refused"})
	got := compare.Reports(before, after, compare.DefaultTolerance)
	NewWithT(t).Expect(got.Regressed).To(ConsistOf(HaveField("Reason", "connection refused")))
}

func TestWrite_Order(t *testing.T) {
	g := NewWithT(t)
	before, after := reporttest.Sample(), reporttest.Sample()
	after.Clusters[0].Results[0] = reporttest.Failing(reporttest.Ran("cascade.background.owner-removed-first", "lets the owner go first", v1alpha1.Failed))
	after.Clusters[0].Results[1].Outcome = v1alpha1.Passed
	after.Clusters[1].Results[0].Seconds = 30
	var text strings.Builder
	g.Expect(compare.Write(&text, compare.Reports(before, after, compare.DefaultTolerance))).To(Succeed())
	g.Expect(text.String()).To(HaveSuffix(`

Regressed (1)
  cascade.background.owner-removed-first on kind-a: passed -> failed: Expected the owner to be deleted last <string>: DELETED owner to come after <string>: DELETED child

Fixed (1)
  cascade.foreground.blocking-dependents-first on kind-a: failed -> passed

Slower (1)
  cascade.background.owner-removed-first on arn:aws:eks:eu-central-1:123:cluster/prod: 1.50 s -> 30.0 s (20.0 times)

1 behavior regressed.
`))
}

func TestWrite_NoChange(t *testing.T) {
	g := NewWithT(t)
	var text strings.Builder
	g.Expect(compare.Write(&text, compare.Reports(reporttest.Sample(), reporttest.Sample(), compare.DefaultTolerance))).To(Succeed())
	g.Expect(text.String()).To(HaveSuffix("\n\nNothing changed.\n"))
}

func TestWrite_TerminalEscapes(t *testing.T) {
	for _, text := range reporttest.Hostile {
		before, after := reporttest.WithText(text), reporttest.WithText(text)
		before.Clusters[0].Results[1].Outcome = v1alpha1.Passed
		var out bytes.Buffer
		if err := compare.Write(&out, compare.Reports(before, after, compare.DefaultTolerance)); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 7 {
			t.Errorf("%q makes %d lines of 7:\n%s", text, lines, out.String())
		}
		if strings.ContainsAny(out.String(), "\x1b\u009b\x00\u202e\r") {
			t.Errorf("%q brings a character out that a terminal obeys", text)
		}
	}
}

func TestWrite_Lost(t *testing.T) {
	g := NewWithT(t)
	tested := reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("x.b", "b", v1alpha1.Passed))
	filtered := reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed), reporttest.Unstarted("x.b", "b", v1alpha1.Filtered))
	other := reporttest.OnCluster("b", reporttest.Unstarted("x.a", "a", v1alpha1.Passed))
	before, after := reporttest.Run("dcone", 0, tested), reporttest.Run("dctwo", time.Minute, filtered)
	before.Clusters = append(before.Clusters, other)
	after.Clusters = append(after.Clusters, reporttest.OnCluster("c"))
	after.Runner = "v2"

	comparison := compare.Reports(before, after, compare.DefaultTolerance)
	comparison.Old.File, comparison.New.File = "old.json", "new.json"

	g.Expect(comparison.HasLost()).To(BeTrue())
	var text strings.Builder
	g.Expect(compare.Write(&text, comparison)).To(Succeed())
	g.Expect(text.String()).To(And(
		HavePrefix("Old: old.json (run dcone of "), ContainSubstring("\nNew: new.json (run dctwo of "), ContainSubstring("by runner v1)"), ContainSubstring("by runner v2)"),
		ContainSubstring("\nNo longer tested (1)\n"),
		HaveSuffix("\nNothing regressed. No longer tested: 1 behavior and 1 of the old report's clusters.\n")))
	g.Expect(compare.Reports(before, before, compare.DefaultTolerance).HasLost()).To(BeFalse())
}
