package projects

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// widgets is a report about a resource.
func widgets(results ...v1alpha1.Result) v1alpha1.Report {
	cluster := reporttest.OnCluster("local", results...)
	cluster.Resource = "widgets.example.com"
	return reporttest.Run("1.37.2", 0, cluster)
}

func failed(id string) v1alpha1.Result { return reporttest.Ran(id, "is true", v1alpha1.Failed) }

func passed(id string) v1alpha1.Result { return reporttest.Ran(id, "is true", v1alpha1.Passed) }

func TestTable_Failures(t *testing.T) {
	g, explained := NewWithT(t), projects{Explanations: map[string]map[string]string{"widgets.example.com": {"s.known": "its webhook refuses that"}}}

	table := tableOf(widgets(failed("s.known"), passed("s.fine")), explained)
	g.Expect(table.problems).To(BeEmpty())
	g.Expect(table.rows).To(HaveLen(1))
	g.Expect(table.rows[0].cells()).To(Equal("widgets.example.com | 1 | 2 | 0"))
	g.Expect(table.rows[0].noteText()).To(Equal("s.known failed: its webhook refuses that"))

	table = tableOf(widgets(failed("s.unknown")), explained)
	g.Expect(errors.Join(table.problems...)).To(MatchError(
		"s.unknown failed of widgets.example.com without an explanation in hack/survey/projects/projects.yaml"))
}

// TestExplored reads the reports of explorations, of which one found something.
func TestExplored(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	chosen := projects{Projects: []project{
		{Name: "one", Controllers: &controllers{Explored: []string{"widgets.example.com"}}},
		{Name: "two", Controllers: &controllers{Explored: []string{"gadgets.example.com"}}},
	}}
	_, err := chosen.explored()
	g.Expect(err).To(MatchError(os.ErrNotExist), "an exploration is missing")

	for resource, result := range map[string]v1alpha1.Result{
		"widgets.example.com": passed("explore.operator.released"), "gadgets.example.com": failed("explore.operator.released"),
	} {
		var written bytes.Buffer
		found := widgets(result)
		found.Clusters[0].Resource = resource
		g.Expect(report.WriteJSON(&written, found)).To(Succeed())
		g.Expect(os.MkdirAll(exploredFolder(resource), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(exploredFolder(resource), "report.json"), written.Bytes(), 0o644)).To(Succeed())
	}
	table, err := chosen.explored()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(errors.Join(table.problems...)).To(MatchError(ContainSubstring("explore.operator.released failed of gadgets.example.com")))
	g.Expect(markdown(tableOf(widgets(), chosen), tableOf(widgets(), chosen), table)).To(And(
		ContainSubstring("runner explore --scenario operator --for "+exploration),
		ContainSubstring("\n| widgets.example.com | 1 | 1 | 0 |  |\n"),
		ContainSubstring("\n| gadgets.example.com | 0 | 1 | 0 | explore.operator.released failed: |\n"),
	))
}
