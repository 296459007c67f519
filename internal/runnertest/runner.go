// Package runnertest runs the built runner for commands of hack/ and test/ that evaluate its reports.
package runnertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

const (
	// stopTime limits how long an interrupted run may take to remove its cluster.
	stopTime = 30 * time.Second
	// conformant, nonconformant and ofKubectl are the exit codes of runs with a verdict: nonconformant when a behavior failed, and
	// ofKubectl when only behaviors of kubectl failed.
	conformant, nonconformant, ofKubectl = 0, 1, 5
	// outputFile contains the output of a run.
	outputFile = "output.txt"
)

// Run runs the suites with the binary and returns the report, which it stores in a directory with the other formats and the output
// (output.txt). Failed behaviors are not an error; it fails when the run has no verdict. When the context ends, the run is interrupted, and
// removes its cluster.
func Run(ctx context.Context, binary, folder string, arguments ...string) (v1alpha1.Report, error) {
	code, err := Exit(ctx, binary, folder, arguments...)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	if code != conformant && code != nonconformant && code != ofKubectl {
		output, err := os.ReadFile(filepath.Join(folder, outputFile))
		return v1alpha1.Report{}, fmt.Errorf("run the suites: exit code %d: %w", code, errors.Join(err, errors.New(lastWords(string(output)))))
	}
	return Report(folder)
}

// Exit runs the suites as Run does and returns the exit code. It fails when the run could not be started or when the context ended.
func Exit(ctx context.Context, binary, folder string, arguments ...string) (code int, err error) {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return 0, err
	}
	arguments = slices.Concat(arguments, []string{"--report-dir", folder})
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = stopTime
	output, err := command.CombinedOutput()
	if err := os.WriteFile(filepath.Join(folder, outputFile), output, 0o644); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run the suites: %w", err)
	}
	return command.ProcessState.ExitCode(), nil
}

// Report reads the report in a run's directory.
func Report(folder string) (v1alpha1.Report, error) {
	return report.Read(filepath.Join(folder, "report.json"))
}

// lastWords returns the last output of a run without a verdict, except the counts.
func lastWords(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, " skipped") && !strings.HasPrefix(line, "reports: ") {
			last = line
		}
	}
	return last
}
