// Package results writes claims with the results of our own runs to docs/results, for the commands below hack/.
package results

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
)

const (
	// folder contains the claims.
	folder = "docs/results"
	// project is the address of this project.
	project = "https://github.com/deletion-conformance/deletion-conformance"
)

// Write makes a claim from a report directory and writes it to docs/results. The implementation is a project of a version, and reproduce is the
// command that tests it. The run must have selected every behavior of a profile, and redacted its report.
func Write(reports, name, version, reproduce string) error {
	content, err := os.ReadFile(filepath.Join(reports, "report.json"))
	if err != nil {
		return err
	}
	made, _, err := claim.Make(claim.Source{Report: content, Implementation: v1alpha1.Implementation{
		Organization: "deletion-conformance", Project: name, Version: version, URL: project, Contact: []string{project + "/issues"}, Reproduce: reproduce,
	}})
	if err != nil {
		return fmt.Errorf("claim %s %s: %w", name, version, err)
	}
	var encoded bytes.Buffer
	if err := claim.Encode(&encoded, made); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+"-"+version+".json"), encoded.Bytes(), 0o644)
}
