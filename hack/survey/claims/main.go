// Package claims runs all suites on implementations of Kubernetes, and of parts of it, and writes claims to docs/results. Failures are
// results, not errors.
package claims

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
)

// reportFolder contains the reports, one directory for each implementation.
const reportFolder = "bin/claims"

// Survey declares the flags of the survey.
func Survey(flags *flag.FlagSet) func(context.Context, []string) error {
	only := flags.String("only", "", "test only the implementations with these `NAMES`, separated by commas")
	return func(ctx context.Context, _ []string) error { return run(ctx, *only) }
}

func run(ctx context.Context, only string) error {
	chosen, err := lab.Choose(implementations, func(i implementation) string { return i.name }, only)
	if err != nil {
		return err
	}
	binaries, err := lab.Binaries()
	if err != nil {
		return err
	}
	var failed []error
	for _, one := range chosen {
		if err := one.claim(ctx, binaries); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	return errors.Join(failed...)
}

// claim runs all suites on an implementation and writes the claim.
func (i implementation) claim(ctx context.Context, binaries string) (err error) {
	start := time.Now()
	version, err := i.version(ctx, binaries)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", i.name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	flags, stop, err := i.start(ctx, binaries, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	reports := filepath.Join(reportFolder, i.name)
	ran, err := lab.Run(ctx, reports, append([]string{"--slow", "--redact"}, flags...)...)
	if err != nil {
		return err
	}
	count := ran.Counts
	fmt.Printf("%-32s %3.0f s  %d passed, %d failed, %d skipped\n", i.name+" "+version, time.Since(start).Seconds(),
		count[v1alpha1.Passed], count[v1alpha1.Failed], count[v1alpha1.Skipped])
	return lab.Claim(reports, i.name, version, "make claims")
}
