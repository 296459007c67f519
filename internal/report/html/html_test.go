package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	dom "golang.org/x/net/html"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// Package browser tests the page in a browser; these tests do not need one.

func htmlOf(t *testing.T, r v1alpha1.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := html.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func parsed(t *testing.T, page string) *dom.Node {
	t.Helper()
	document, err := dom.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// content returns the text of the only element with a tag and, if given, an id.
func content(t *testing.T, document *dom.Node, tag, id string) string {
	t.Helper()
	for node := range document.Descendants() {
		if node.Type == dom.ElementNode && node.Data == tag && attribute(node, "id") == id && node.FirstChild != nil {
			return node.FirstChild.Data
		}
	}
	t.Fatalf("there is no %s with id %q", tag, id)
	return ""
}

func attribute(node *dom.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func policy(t *testing.T, document *dom.Node) string {
	t.Helper()
	for node := range document.Descendants() {
		if node.Data == "meta" && attribute(node, "http-equiv") == "Content-Security-Policy" {
			return attribute(node, "content")
		}
	}
	t.Fatal("the page has no content security policy")
	return ""
}

func TestHTML_Policy(t *testing.T) {
	g := NewWithT(t)
	document := parsed(t, htmlOf(t, reporttest.Sample()))
	source := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	g.Expect(policy(t, document)).To(Equal(fmt.Sprintf(
		"default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
		source(content(t, document, "script", "")), source(content(t, document, "style", "")))))
}

func TestHTML_SelfContained(t *testing.T) {
	g := NewWithT(t)
	page := htmlOf(t, reporttest.Sample())
	g.Expect(regexp.MustCompile(`(?:src|href)="[^#]`).FindString(page)).To(BeEmpty())
	g.Expect(regexp.MustCompile(`url\([^#]`).FindString(page)).To(BeEmpty())
	g.Expect(page).NotTo(ContainSubstring("@import"))
	for node := range parsed(t, page).Descendants() {
		for _, a := range node.Attr {
			g.Expect(a.Key).NotTo(Or(HavePrefix("on"), Equal("style")), "%s %s", node.Data, a.Key)
		}
	}
}

func TestHTML_HostileText(t *testing.T) {
	script := htmlOf(t, reporttest.Sample())
	NewWithT(t).Expect(script).NotTo(MatchRegexp(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function`))
	harmless, _ := reporttest.Elements(parsed(t, htmlOf(t, reporttest.WithText("harmless"))))
	for _, text := range reporttest.Hostile {
		page := htmlOf(t, reporttest.WithText(text))
		count, shown := reporttest.Elements(parsed(t, page))
		if fmt.Sprint(count) != fmt.Sprint(harmless) && strings.TrimSpace(text) != "" {
			t.Errorf("%q changes the elements\nfrom %v\nto   %v", text, harmless, count)
		}
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(visible.Text(text)), " ")) {
			t.Errorf("%q is not shown", text)
		}
		if strings.ContainsAny(page, "\x1b\u009b\x00\u202e\r") {
			t.Errorf("%q brings a character into the page that a terminal obeys", text)
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, text := range reporttest.Hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		harmless, _ := reporttest.Elements(parsed(t, htmlOf(t, reporttest.WithText("harmless"))))
		count, _ := reporttest.Elements(parsed(t, htmlOf(t, reporttest.WithText(text))))
		if fmt.Sprint(count) != fmt.Sprint(harmless) && strings.TrimSpace(text) != "" {
			t.Errorf("%q changes the elements\nfrom %v\nto   %v", text, harmless, count)
		}
	})
}

func TestHTML_Reproducible(t *testing.T) {
	first, second := htmlOf(t, reporttest.Fleet(60, 4)), htmlOf(t, reporttest.Fleet(60, 4))
	NewWithT(t).Expect(first == second).To(BeTrue())
}

func TestHTML_NothingTested(t *testing.T) {
	_, text := reporttest.Elements(parsed(t, htmlOf(t, report.Concluded(v1alpha1.Report{}))))
	NewWithT(t).Expect(text).To(ContainSubstring("nothing tested"))
}

// TestHTML_Size fills timelines with data that cannot be compressed: random uids.
func TestHTML_Size(t *testing.T) {
	g := NewWithT(t)
	r := reporttest.Fleet(200, 20)
	random := rand.New(rand.NewPCG(1, 2))
	for c := range r.Clusters {
		for i := range r.Clusters[c].Results {
			timeline := &r.Clusters[c].Results[i].Timeline
			for n := range timeline.Events {
				event := timeline.Events[n]
				for range 4 {
					event.UID = types.UID(fmt.Sprintf("%016x", random.Uint64()))
					event.Name = fmt.Sprintf("random-%016x", random.Uint64())
					timeline.Events = append(timeline.Events, event)
				}
			}
		}
	}
	page := htmlOf(t, r)
	g.Expect(len(page)).To(And(BeNumerically("<", 5_000_000), BeNumerically(">", 3_500_000)))
}

func TestHTML_LeftOutResources(t *testing.T) {
	g := NewWithT(t)
	whole := reporttest.Sample()
	g.Expect(htmlOf(t, whole)).NotTo(ContainSubstring("left-out-title"))
	whole.LeftOut = []v1alpha1.LeftOut{
		{Cluster: "kind-a", Resource: "nodes", Reason: "machines"}, {Cluster: "kind-a", Resource: "roles", Reason: "permissions"},
		{Cluster: "kind-a", Resource: "csinodes.storage.k8s.io", Reason: "machines"}, {Cluster: "kind-b", Resource: "nodes", Reason: "machines"},
	}
	page := htmlOf(t, whole)
	g.Expect(page).To(ContainSubstring(
		"<b>2</b> <bdi>machines</bdi></summary><p><code>nodes</code> <code>csinodes.storage.k8s.io</code>"))
	g.Expect(page).To(ContainSubstring("<b>1</b> <bdi>permissions</bdi></summary><p><code>roles</code>"))
}

func TestHTML_Causes(t *testing.T) {
	g := NewWithT(t)
	errored := func(id, reason string) v1alpha1.Result {
		return reporttest.Because(reporttest.Unstarted(id, id, v1alpha1.Errored), reason)
	}
	dead := reporttest.OnCluster("dead", errored("x.a", "no route"), errored("x.b", "no route"))
	dead.Problem = "no route"
	page := htmlOf(t, reporttest.Run("r", 0, dead))
	g.Expect(strings.Count(page, "no route")).To(Equal(1), "in the verdict")
	g.Expect(page).To(And(ContainSubstring("no route (2 behaviors errored)"), ContainSubstring("could not be tested: 2 behaviors errored"),
		Not(ContainSubstring(`class="problem `))))

	page = htmlOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", errored("x.a", "EOF"), errored("x.b", "EOF"), errored("x.c", "reset"))))
	g.Expect(strings.Count(page, `class="problem errored"`)).To(Equal(2))
	g.Expect(page).To(ContainSubstring(`<span class="statement">2 behaviors</span> <bdi class="cause">EOF</bdi>`))
	g.Expect(page).To(ContainSubstring(`data-row="1" data-column="0" disabled><code>x.b</code> on <bdi>a</bdi></button>`))
}

func TestHTML_FirstScreen(t *testing.T) {
	page := htmlOf(t, reporttest.Run("r", 0, reporttest.OnCluster("a", reporttest.Unstarted("x.a", "a", v1alpha1.Passed),
		reporttest.Because(reporttest.Unstarted("x.b", "b", v1alpha1.Filtered), "not selected: it is slow"))))
	g := NewWithT(t)
	g.Expect(page).To(MatchRegexp(`<h1>conformant</h1>\n<ul class="counts" aria-label="Results by outcome">\n<li class="passed"><b>1</b> .*\n<li class="filtered"><b>1</b> .*\n</ul>`))
	g.Expect(page).To(And(ContainSubstring(`<b>1</b> <bdi>not selected: it is slow</bdi>`), Not(ContainSubstring("untested-title"))))
}

func TestHTML_KubectlVerdict(t *testing.T) {
	client := reporttest.Unstarted("kubectl.a", "a", v1alpha1.Failed)
	client.Features = []v1alpha1.Feature{v1alpha1.Kubectl}
	whole := reporttest.Run("r", 0, reporttest.OnCluster("a", client, reporttest.Unstarted("x.a", "a", v1alpha1.Passed)))
	whole.Clusters[0].KubectlVersion = "v1.37.2"
	NewWithT(t).Expect(htmlOf(t, report.Concluded(whole))).To(And(ContainSubstring("<h1>conformant</h1>"),
		ContainSubstring(`<p class="client not-conformant"><bdi>kubectl v1.37.2</bdi>: <b>not conformant</b>, 1 behavior failed</p>`)))
}

func TestHTML_ClusterColumns(t *testing.T) {
	columns := regexp.MustCompile(`<th scope="col">(Nodes)</th>|<span class="name">([^<]+)</span>`)
	shown := func(clusters ...v1alpha1.Cluster) (names []string) {
		whole := reporttest.Run("r", 0, v1alpha1.Cluster{})
		whole.Clusters = clusters
		for _, found := range columns.FindAllStringSubmatch(htmlOf(t, report.Concluded(whole)), -1) {
			names = append(names, found[1]+found[2])
		}
		return names
	}
	bare := reporttest.OnCluster("bare", reporttest.Unstarted("x.a", "a", v1alpha1.Passed))
	bare.Features = []v1alpha1.FeatureStatus{{Feature: v1alpha1.TwoNodes}}
	machines := reporttest.OnCluster("machines", reporttest.Unstarted("x.a", "a", v1alpha1.Interrupted))
	machines.NodeRuntime = "containerd://2.0"
	g := NewWithT(t)
	g.Expect(shown(bare)).To(Equal([]string{"passed"}))
	g.Expect(shown(bare, machines)).To(Equal([]string{"Nodes", "passed", "interrupted"}))
	g.Expect(htmlOf(t, reporttest.Run("r", 0, bare))).NotTo(ContainSubstring("without two-nodes"))
}
