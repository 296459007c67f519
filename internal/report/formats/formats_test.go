package formats_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "out", "today")
	g.Expect(formats.Write(dir, reporttest.Sample())).To(Succeed())
	g.Expect(formats.Write(dir, reporttest.Sample())).To(Succeed(), "a second run replaces them")
	g.Expect(names(t, dir)).To(Equal([]string{"ctrf.json", "junit.xml", "report.html", "report.json", "summary.md"}))
}

func TestWrite_UnwritableFile(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(dir, "junit.xml", "in the way"), 0o755)).To(Succeed())
	g.Expect(formats.Write(dir, reporttest.Sample())).To(MatchError(HavePrefix("write " + filepath.Join(dir, "junit.xml") + ": ")))
	g.Expect(names(t, dir)).To(Equal([]string{"ctrf.json", "junit.xml", "report.html", "report.json", "summary.md"}))
}

func TestWrite_InvalidDirectory(t *testing.T) {
	g := NewWithT(t)
	blocked := filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(blocked, nil, 0o644)).To(Succeed())
	g.Expect(formats.Write(filepath.Join(blocked, "out"), reporttest.Sample())).To(MatchError(
		And(HavePrefix("create the report directory "), ContainSubstring("choose another with --report-dir"))))
}
