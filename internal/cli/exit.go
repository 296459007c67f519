package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// Exit codes of the runner.
const (
	// ExitPassed means that no behavior failed, and that at least one passed on each cluster.
	ExitPassed = 0
	// ExitFailed means that a behavior of a cluster failed, that a known failure passed or its date is over, or that `runner compare`
	// found one of these, or that `runner verify` found a claim that does not hold.
	ExitFailed = 1
	// ExitUsage means that a flag, an argument or an input file is invalid. No cluster was changed.
	ExitUsage = 2
	// ExitUntested means that a cluster could not be tested: it could not be created, was unreachable, refused the run, or all
	// selected behaviors were skipped.
	ExitUntested = 3
	// ExitRunError means that the run itself failed: behaviors errored, something that the run created could not be deleted, a
	// report could not be written, or the runner has a bug.
	ExitRunError = 4
	// ExitKubectl means that behaviors of kubectl failed, and none of a cluster.
	ExitKubectl = 5
	// ExitInterrupted means that Ctrl-C or SIGTERM ended the run.
	ExitInterrupted = 130
)

// exitCodesUsage describes the exit codes of a run in --help.
const exitCodesUsage = `Exit codes:
  0    passed, or failed only as known (--known-failures)
  1    a behavior failed, or a known failure passed
  2    invalid usage or input
  3    a cluster could not be tested: unreachable, refused, or nothing to test
  4    the run itself failed or could not clean up
  5    only behaviors of kubectl failed
  130  interrupted`

// exit is an exit code with an error to print, unless the command has printed it.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage marks an error of the command line or of an input file; nil stays nil.
func usage(err error) error { return exitWith(ExitUsage, err) }

// exitWith adds an exit code to an error; nil stays nil.
func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exit{code, err}
}

// codeOf returns the exit code for a command's error.
func codeOf(err error) int {
	ended := (*exit)(nil)
	switch {
	case err == nil:
		return ExitPassed
	case errors.As(err, &ended):
		return ended.code
	case errors.As(err, &run.InputError{}):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, environment.ErrUnreachable), errors.Is(err, environment.ErrRefused):
		return ExitUntested
	}
	return ExitRunError
}

// exitCode returns the exit code of a run. Failures of the cluster take precedence over those of kubectl.
func exitCode(whole v1alpha1.Report, failed error) int {
	cluster, _ := whole.Verdict(v1alpha1.SubjectCluster)
	kubectl, tested := whole.Verdict(v1alpha1.SubjectKubectl)
	passed := cluster.Conclusion.Passes()
	switch {
	case whole.Interrupted:
		return ExitInterrupted
	case cluster.Conclusion.Fails():
		return ExitFailed
	case passed && tested && kubectl.Conclusion.Fails():
		return ExitKubectl
	case failed != nil && !errors.Is(failed, environment.ErrUnreachable), report.HasRunErrors(whole), cluster.Conclusion == v1alpha1.Incomplete, passed && tested && !kubectl.Conclusion.Passes():
		return ExitRunError
	case !passed:
		return ExitUntested
	}
	return ExitPassed
}
