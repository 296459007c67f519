package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/claim"
)

const (
	// claimFolder contains the claims.
	claimFolder = "docs/results"
	// trial is the environment variable for runs with uncommitted changes, whose claims go to trialFolder.
	trial, trialFolder = "TRIAL", "bin/results"
	// project is the address of this project.
	project = "https://github.com/deletion-conformance/deletion-conformance"
)

// ModuleVersion returns the version of a module in a go.mod, without the v.
func ModuleVersion(ctx context.Context, module, file string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-modfile="+file, "-f", "{{.Version}}", module)
	list.Env = append(os.Environ(), "GOWORK=off")
	version, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(version)), "v"), nil
}

// checkCommitted returns an error if a version of the runner contains uncommitted changes: no one else has it to repeat the test.
func checkCommitted(version string) error {
	if strings.HasSuffix(version, "-dirty") && os.Getenv(trial) == "" {
		return fmt.Errorf("the runner %s contains uncommitted changes: commit them and build it again, or set %s=1 to write the claim to %s", version, trial, trialFolder)
	}
	return nil
}

// Claim makes a claim from a report directory and writes it to docs/results, for a trial to bin/results. The implementation is a project of
// a version, and reproduce is the command that tests it. The run must have selected every behavior of a profile, and redacted its report.
func Claim(reports, name, version, reproduce string) error {
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
	if err := checkCommitted(made.Runner); err != nil {
		return fmt.Errorf("claim %s %s: %w", name, version, err)
	}
	target := claimFolder
	if os.Getenv(trial) != "" {
		target = trialFolder
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	}
	var encoded bytes.Buffer
	if err := claim.Encode(&encoded, made); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, name+"-"+version+".json"), encoded.Bytes(), 0o644)
}
