package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/exploration"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
	"github.com/deletion-conformance/deletion-conformance/model/history/checks"
)

func TestExploration_Redacted(t *testing.T) {
	g := NewWithT(t)
	redactor := &redact.Redactor{}
	redactor.Note("Bearer open-sesame")
	var out bytes.Buffer
	c := &conductor{Options: &Options{ReportDir: t.TempDir()}, redactor: redactor}
	failure := exploration.Failure{Violation: history.Violation{Property: checks.Objects[0]}}
	failure.History = &history.History{Names: []string{"open-sesame"}, Requests: []history.Request{{Operation: model.Operation{Verb: model.Get, UID: "open-sesame"}}}}

	g.Expect(c.saveReplay(&clusterRun{Cluster: clusters.Cluster{}, resource: "open-sesame"}, failure, NewExploration())).To(Succeed())

	content, err := os.ReadFile(filepath.Join(c.ReportDir, replayName(failure.Property.ID)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(And(ContainSubstring("[redacted]"), Not(ContainSubstring("open-sesame")), ContainSubstring(replayKind)))
	(&exploreProgress{out: redactor.Writer(&out)}).round("open-sesame", exploration.Totals{})
	g.Expect(out.String()).To(HavePrefix("[redacted]: 0 rounds"))
}

func TestExploration_IssueDrafts(t *testing.T) {
	g := NewWithT(t)
	c := &conductor{Options: &Options{ReportDir: t.TempDir()}}
	whole := reporttest.Run("run", 0, reporttest.OnCluster("local",
		reporttest.Ran("explore.object.one-order", "holds", v1alpha1.Failed), reporttest.Ran("explore.watch.order", "holds", v1alpha1.Passed)))
	g.Expect(c.draftIssues(whole)).To(Succeed())
	written, err := filepath.Glob(filepath.Join(c.ReportDir, "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written).To(ConsistOf(HaveSuffix("explore.object.one-order.md")))
	c.ReportDir = filepath.Join(c.ReportDir, "missing")
	g.Expect(c.draftIssues(whole)).To(MatchError(ContainSubstring("explore.object.one-order")))
	c.ReportDir = ""
	g.Expect(c.draftIssues(whole)).To(Succeed(), "without reports")
}
