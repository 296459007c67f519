package markdown_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

func summaryOf(t *testing.T, r v1alpha1.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := markdown.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// rendered renders the summary as GitHub's Markdown, including raw HTML, so that the test sees everything that would reach GitHub's
// sanitizer.
func rendered(t *testing.T, markdown string) *html.Node {
	t.Helper()
	var out bytes.Buffer
	converter := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(goldmarkhtml.WithUnsafe()))
	if err := converter.Convert([]byte(markdown), &out); err != nil {
		t.Fatal(err)
	}
	document, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestSummary_FirstScreen(t *testing.T) {
	g := NewWithT(t)
	markdown := summaryOf(t, reporttest.Sample())
	g.Expect(markdown).To(HavePrefix("## ❌ Deletion conformance: not conformant\n\n1 behavior failed; cluster \"gone\": dial tcp"))
	g.Expect(markdown).To(ContainSubstring("| Cluster | Server | Node runtime | ✅ passed | ❌ failed | 🔶 deviated | 💥 errored | ⏹️ interrupted | ⏭️ skipped | ▫️ not selected |\n"))
	g.Expect(markdown).To(ContainSubstring("| <code>kind-a</code> | v1.36.3 | containerd&#58;//1.6.20 | 1 | 1 | 1 | 1 | 2 | 1 | 1 |"))
	var last int
	for _, heading := range []string{"| Cluster |", "| Cause |", "Failed (1)", "Errors of the run (1)", "Deviations (1)", "### Preflight", "Not tested", "How long deletions took", "Slowest"} {
		at := strings.Index(markdown, heading)
		g.Expect(at).To(BeNumerically(">", last), heading)
		last = at
	}
	g.Expect(markdown).To(ContainSubstring("<summary>1: no node is ready</summary>"))
	g.Expect(markdown).To(ContainSubstring("| <code>cascade.background.owner-removed-first</code> | <code>kind-a</code> | 1.50 |"))

	count, text := reporttest.Elements(rendered(t, markdown))
	g.Expect(count["table"]).To(Equal(5))
	g.Expect(markdown).To(ContainSubstring("| Foreground, 1 level of dependents: waiting to gone | <code>kind-a</code> | 5 | 41 ms | 41 ms | 41 ms | 41 ms |"))
	g.Expect(count["pre"]).To(Equal(6), "three messages with their evidence")
	g.Expect(text).To(ContainSubstring("to come after\n    <string>: DELETED child"))
}

func TestSummary_KubectlVerdict(t *testing.T) {
	g := NewWithT(t)
	client := reporttest.Unstarted("kubectl.a", "a", v1alpha1.Failed)
	client.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	whole := reporttest.Run("r", 0, reporttest.OnCluster("a", client, reporttest.Unstarted("x.a", "a", v1alpha1.Passed)))
	whole.Clusters[0].KubectlVersion = "v1.37.2"
	g.Expect(summaryOf(t, report.Concluded(whole))).To(And(
		HavePrefix("## ✅ Deletion conformance: conformant\n\n❌ kubectl v1.37.2: **not conformant**, 1 behavior failed\n"),
	))
}

func TestSummary_Causes(t *testing.T) {
	g := NewWithT(t)
	errored := func(id, reason string) v1alpha1.Result {
		return reporttest.Because(reporttest.Unstarted(id, id, v1alpha1.Errored), reason)
	}
	dead := reporttest.OnCluster("dead", errored("x.a", "refused"), errored("x.b", "refused"))
	dead.Problem = "refused"
	summary := summaryOf(t, reporttest.Run("r", 0, dead))
	g.Expect(summary).To(HavePrefix("## 💥 Deletion conformance: run error\n\ncluster \"dead\": refused (2 behaviors errored)\n"))
	g.Expect(strings.Count(summary, "refused")).To(Equal(1))

	summary = summaryOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", errored("x.a", "EOF"), errored("x.b", "EOF"), errored("x.c", "reset"))))
	g.Expect(summary).To(ContainSubstring("### 💥 Errors of the run (3)"))
	g.Expect(strings.Count(summary, "EOF")).To(Equal(1))
	g.Expect(summary).To(ContainSubstring("<summary>2 behaviors</summary>\n\n<code>x.a</code> · <code>x.b</code>"))
	g.Expect(summary).To(ContainSubstring("<code>x.c</code> on <code>a</code> (core)\n\n```text\nreset"))
}

func TestSummary_NotSelected(t *testing.T) {
	g := NewWithT(t)
	unselected := reporttest.Because(reporttest.Unstarted("x.b", "b", v1alpha1.Filtered), "not selected: it is slow")
	summary := summaryOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed), unselected)))
	g.Expect(summary).To(HavePrefix("## ✅ Deletion conformance: conformant\n\n" +
		"| Cluster | Server | ✅ passed | ▫️ not selected |\n|---|---|--:|--:|\n| <code>a</code> | v1.36.3 | 1 | 1 |\n\nRun "))
	g.Expect(summary).To(ContainSubstring("### ▫️ Not selected (1)\n\n- 1: not selected: it is slow\n"))
	g.Expect(summary).NotTo(Or(ContainSubstring("x.b"), ContainSubstring("Not tested")))
}

func TestSummary_KnownFailures(t *testing.T) {
	g := NewWithT(t)
	known := reporttest.Because(reporttest.Failing(reporttest.Ran("x.a", "a", v1alpha1.Known)), "known failure: bug 1")
	summary := summaryOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", known)))
	g.Expect(summary).To(HavePrefix("## 📌 Deletion conformance: conformant except known failures\n\n| Cluster |"))
	g.Expect(summary).To(ContainSubstring("### 📌 Known failures (1)"))
	g.Expect(summary).To(ContainSubstring("```text\nknown failure: bug 1\n```"))

	outdated := reporttest.Because(reporttest.Ran("x.a", "a", v1alpha1.Outdated), "passed, but is listed: remove the entry")
	summary = summaryOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", outdated)))
	g.Expect(summary).To(HavePrefix("## 🧹 Deletion conformance: known failures outdated\n\n1 known failure is outdated: x.a\n"))
	g.Expect(summary).To(ContainSubstring("passed, but is listed: remove the entry"))
}

func TestSummary_NothingTested(t *testing.T) {
	NewWithT(t).Expect(summaryOf(t, report.Concluded(v1alpha1.Report{}))).To(HavePrefix("## ⚠️ Deletion conformance: nothing tested\n\nno cluster specified\n"))
}

func TestSummary_HostileText(t *testing.T) {
	harmless, _ := reporttest.Elements(rendered(t, summaryOf(t, reporttest.WithText("harmless"))))
	for _, text := range reporttest.Hostile {
		checkHostileSummary(t, text, harmless)
	}
}

// shownOfMessage limits a message in a summary, in characters.
const shownOfMessage = 4_000

func FuzzSummary(f *testing.F) {
	for _, text := range reporttest.Hostile {
		f.Add(text)
	}
	f.Add(strings.Repeat("\x10", shownOfMessage/2)) // too long after escaping
	f.Fuzz(func(t *testing.T, text string) {
		harmless, _ := reporttest.Elements(rendered(t, summaryOf(t, reporttest.WithText("harmless"))))
		checkHostileSummary(t, text, harmless)
	})
}

// checkHostileSummary compares the elements of the summary with those for a harmless text.
func checkHostileSummary(t *testing.T, text string, harmless map[string]int) {
	t.Helper()
	markdown := summaryOf(t, reporttest.WithText(text))
	count, shown := reporttest.Elements(rendered(t, markdown))
	if fmt.Sprint(count) != fmt.Sprint(harmless) && strings.TrimSpace(text) != "" {
		t.Errorf("%q changes the elements\nfrom %v\nto   %v\n%s", text, harmless, count, markdown)
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	if !strings.Contains(squeeze(shown), squeeze(report.Shorten(visible.Text(text), shownOfMessage))) {
		t.Errorf("%q is not shown, as far as a message is, in\n%s", text, shown)
	}
	if strings.ContainsAny(markdown, "\x1b\u009b\x00\u202e\r") {
		t.Errorf("%q brings a character into the summary that a terminal obeys", text)
	}
}

func TestSummary_SizeLimit(t *testing.T) {
	const limit = 1 << 20
	g := NewWithT(t)
	var r v1alpha1.Report
	for c := range 5 {
		cluster := v1alpha1.Cluster{Name: fmt.Sprintf("cluster-%d", c)}
		for b := range 200 {
			id := fmt.Sprintf("cascade.topic-%d.%s", b, strings.Repeat("behavior-", 4))
			outcome := []v1alpha1.Outcome{v1alpha1.Failed, v1alpha1.Errored, v1alpha1.Deviated, v1alpha1.Skipped}[b%4]
			res := reporttest.Because(reporttest.Failing(reporttest.Ran(id, strings.Repeat("statement ", 20), outcome)), fmt.Sprintf("reason %d on %d", b, c))
			res.Failure.Message = strings.Repeat("日本語", 3000)
			res.Timeline.Requests = slices.Repeat(res.Timeline.Requests, 50)
			cluster.Results = append(cluster.Results, res)
		}
		r.Clusters = append(r.Clusters, cluster)
	}
	markdown := summaryOf(t, r)
	g.Expect(len(markdown)).To(BeNumerically("<", limit))
	g.Expect(markdown).To(ContainSubstring(" more: report.html and report.json have them all."))
	g.Expect(markdown).To(ContainSubstring(" more reasons"))
}

func TestSummary_LeftOutResources(t *testing.T) {
	g := NewWithT(t)
	whole := reporttest.Sample()
	whole.LeftOut = []v1alpha1.LeftOut{{Cluster: "kind-a", Resource: "nodes", Reason: "machines | of the cluster"}}
	summary := summaryOf(t, whole)
	g.Expect(summary).To(ContainSubstring("### Resources left out (1)"))
	g.Expect(summary).To(MatchRegexp(`(?m)^\| .*kind-a.* \| .*nodes.* \| machines .*of the cluster \|$`))
}
