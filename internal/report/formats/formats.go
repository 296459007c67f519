// Package formats writes all formats of a report.
package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/ctrf"
	"github.com/deletion-conformance/deletion-conformance/internal/report/html"
	"github.com/deletion-conformance/deletion-conformance/internal/report/junit"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
)

// formats are the files of a report directory with their writers.
var formats = []struct {
	name  string
	write func(io.Writer, v1alpha1.Report) error
}{
	{"junit.xml", junit.Write},
	{"report.json", report.WriteJSON},
	{"ctrf.json", ctrf.Write},
	{"report.html", html.Write},
	{"summary.md", markdown.Write},
}

// Write writes every format of the report to a directory, which is created if necessary. Files are replaced atomically. A file that cannot be written does not affect the others; the error names each.
func Write(dir string, r v1alpha1.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the report directory %s: %w; choose another with --report-dir", dir, err)
	}
	var failures []error
	for _, format := range formats {
		var content bytes.Buffer
		path := filepath.Join(dir, format.name)
		err := format.write(&content, r)
		if err == nil {
			err = maybe.WriteFile(path, content.Bytes(), 0o644)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("write %s: %w", path, err))
		}
	}
	return errors.Join(failures...)
}
