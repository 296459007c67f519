package formats

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

// FuzzReportFile reads arbitrary reports: each yields an error on one line, or can be written in every format, read again, compared and
// merged.
func FuzzReportFile(f *testing.F) {
	var sample bytes.Buffer
	if err := report.WriteJSON(&sample, reporttest.Sample()); err != nil {
		f.Fatal(err)
	}
	f.Add(sample.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "report.json")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := report.Read(file)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") || !strings.Contains(err.Error(), file) {
				t.Errorf("want one line that names the file, got %q", err)
			}
			return
		}
		_ = compare.Write(io.Discard, compare.Reports(read, read, compare.DefaultTolerance))
		_, _ = merge.Reports(report.Source{Report: read, File: "one"}, report.Source{Report: read, File: "other"})
		for _, format := range formats {
			var written bytes.Buffer
			if err := format.write(&written, read); err != nil {
				t.Errorf("write %s: %v", format.name, err)
			}
			if format.name != "report.json" {
				continue
			}
			if err := os.WriteFile(file, written.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := report.Read(file); err != nil {
				t.Errorf("what was written cannot be read again: %v", err)
			}
		}
	})
}
