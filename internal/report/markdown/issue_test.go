package markdown_test

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func TestWriteIssue(t *testing.T) {
	g := NewWithT(t)
	result := reporttest.Ran("explore.object.one-order", "An order explains <script>all</script> responses.", v1alpha1.Failed)
	result.Promise, result.Source = "promised @everybody", "concepts/example"
	result.Failure = &v1alpha1.Failure{Message: "get found no object ```\n# no heading"}
	result.Timeline = v1alpha1.Timeline{Requests: []v1alpha1.Request{{At: time.Unix(0, 0), Verb: "GET", Path: "client 1: get a", Status: 404}}}
	cluster := v1alpha1.Cluster{Name: "local", ServerVersion: "v1.37.2"}
	var out bytes.Buffer
	g.Expect(markdown.WriteIssue(&out, v1alpha1.Report{Runner: "v0.1.0"}, cluster, result, "runner explore --replay explore.object.one-order.json")).To(Succeed())
	draft := out.String()
	g.Expect(draft).To(And(HavePrefix("# explore.object.one-order: An order explains"), ContainSubstring("client 1: get a -> 404"),
		ContainSubstring("runner explore --replay explore.object.one-order.json"), ContainSubstring("Kubernetes <code>v1.37.2</code>"), Not(ContainSubstring("@everybody"))))
	var headings []string
	for node := range rendered(t, draft).Descendants() {
		g.Expect(node.Data).NotTo(Equal("script"))
		if node.Type == html.ElementNode && (node.Data == "h1" || node.Data == "h2") {
			headings = append(headings, node.FirstChild.Data)
		}
	}
	g.Expect(headings).To(HaveExactElements(ContainSubstring("one-order"), "What happened?", "What did you expect to happen?", "How can we reproduce it?", "Versions"))
}
