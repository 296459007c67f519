package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// files are the files of a report folder and what writes each.
func files() []file {
	return []file{
		{"junit.xml", WriteJUnit},
		{"report.json", WriteJSON},
		{"report.html", WriteHTML},
		{"summary.md", WriteSummary},
	}
}

type file struct {
	name  string
	write func(io.Writer, v1alpha1.Report) error
}

// WriteAll writes every form of the report into a folder, which is made where it does not exist. A file is replaced
// only by a complete one. One file that cannot be written does not keep the others from it; the error names each.
func WriteAll(dir string, r v1alpha1.Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the report folder %s: %w; name another with --report-dir", dir, err)
	}
	var failures []error
	for _, f := range files() {
		var content bytes.Buffer
		err := f.write(&content, r)
		if err == nil {
			err = replace(filepath.Join(dir, f.name), content.Bytes())
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("write %s: %w", filepath.Join(dir, f.name), err))
		}
	}
	return errors.Join(failures...)
}

// replace writes a file beside the path and renames it there.
func replace(path string, content []byte) error {
	partial := path + ".partial"
	err := os.WriteFile(partial, content, 0o644)
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}
