package markdown_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// historyOf writes the history of reports, which are a day apart.
func historyOf(t *testing.T, reports ...v1alpha1.Report) string {
	t.Helper()
	sources := make([]report.Source, len(reports))
	for i, r := range reports {
		r.Start = reporttest.Start.Add(time.Duration(i) * 24 * time.Hour)
		sources[i] = report.Source{Report: r, File: fmt.Sprintf("%d.json", i+1)}
	}
	history, err := compare.Over(sources, compare.DefaultTolerance, compare.DefaultDrift)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := markdown.WriteHistory(&out, history); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// measured returns a report of one behavior and one figure.
func measured(outcome v1alpha1.Outcome, median float64) v1alpha1.Report {
	cluster := reporttest.OnCluster("kind-a", reporttest.Because(reporttest.Unstarted("x.a", "a", outcome), "a | reason"))
	cluster.Figures = []v1alpha1.Figure{{Operation: v1alpha1.NamespaceDelete, Count: 20, P50: median}}
	return reporttest.Run("r", 0, cluster)
}

func TestHistory_Tables(t *testing.T) {
	g := NewWithT(t)
	var reports []v1alpha1.Report
	for i, outcome := range []v1alpha1.Outcome{v1alpha1.Passed, v1alpha1.Skipped, v1alpha1.Passed, v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Failed} {
		reports = append(reports, measured(outcome, map[bool]float64{true: 1, false: 3}[i < 3]))
	}
	g.Expect(historyOf(t, reports...)).To(HavePrefix(`## Deletion conformance: history of 6 reports

1 behavior regressed. 1 duration drifted.

### Failing (1)

| Behavior | Cluster | Outcomes | Change | Reason |
|---|---|---|---|---|
| <code>x.a</code> | <code>kind-a</code> | ✅⏭️✅❌❌❌ | failed since report 4 (2026-03-07, v1.36.3), passed in report 3 (2026-03-06, v1.36.3) | a &#124; reason |

### Drifted (1)

| Duration | Cluster | Change |
|---|---|---|
| Namespace: terminating to gone | <code>kind-a</code> | 1.00 s -&#62; 3.00 s (3.0 times) since report 4 (2026-03-07, v1.36.3): medians of 3 and 3 reports |

### Reports

| Number | Report |
|---|---|
| 1 | 1.json (run r of 2026-03-04 05:06:07 by runner v1) |
`))
}

func TestHistory_HostileText(t *testing.T) {
	of := func(text string) string {
		before, after := reporttest.WithText(text), reporttest.WithText(text)
		before.Clusters[0].Results[1].Outcome = v1alpha1.Passed
		return historyOf(t, before, before, after)
	}
	harmless, _ := reporttest.Elements(rendered(t, of("harmless")))
	for _, text := range reporttest.Hostile {
		written := of(text)
		if count, _ := reporttest.Elements(rendered(t, written)); fmt.Sprint(count) != fmt.Sprint(harmless) {
			t.Errorf("%q changes the elements\nfrom %v\nto   %v\n%s", text, harmless, count, written)
		}
		if strings.ContainsAny(written, "\x1b\u009b\x00\u202e\r") {
			t.Errorf("%q brings a character into the history that a terminal obeys", text)
		}
	}
}

func TestHistory_SizeLimit(t *testing.T) {
	cluster := reporttest.OnCluster("a")
	for b := range 5000 {
		cluster.Results = append(cluster.Results, reporttest.Because(reporttest.Unstarted(fmt.Sprintf("x.%d", b), "a", v1alpha1.Failed), strings.Repeat("日本語", 100)))
	}
	written := historyOf(t, reporttest.Run("a", 0, cluster), reporttest.Run("b", 0, cluster), reporttest.Run("c", 0, cluster))
	g := NewWithT(t)
	g.Expect(len(written)).To(BeNumerically("<", 1<<20))
	g.Expect(written).To(ContainSubstring("more are not listed."))
}
