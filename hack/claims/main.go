// Command claims runs all suites on implementations of Kubernetes, and of parts of it, and writes claims to docs/results. Use: make claims,
// or in the repository's root
//
//	go run ./hack/claims                # all of them
//	go run ./hack/claims -only envtest  # one of them
//
// Failures are results, not errors. The reports are in bin/claims.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/internal/results"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/build"
)

const (
	// runner and kubernetes are built by `make build`.
	runner, kubernetes = "bin/runner", "bin/kubernetes"
	// reportFolder contains the reports, one directory for each implementation.
	reportFolder = "bin/claims"
)

func main() {
	only := flag.String("only", "", "test only the implementation with this `NAME`: "+strings.Join(names(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "claims:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func names() []string {
	var names []string
	for _, one := range implementations {
		names = append(names, one.name)
	}
	return names
}

func run(ctx context.Context, only string) error {
	binaries, err := build.Find(kubernetes, "")
	if err != nil {
		return err
	}
	var failed []error
	tested := 0
	for _, one := range implementations {
		if only != "" && one.name != only {
			continue
		}
		tested++
		if err := one.claim(ctx, binaries); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	if tested == 0 {
		return fmt.Errorf("unknown implementation %q; the implementations are %s", only, strings.Join(names(), ", "))
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
	ran, err := runnertest.Run(ctx, runner, reports, append([]string{"--slow", "--redact"}, flags...)...)
	if err != nil {
		return err
	}
	count := ran.Counts
	fmt.Printf("%-32s %3.0f s  %d passed, %d failed, %d skipped\n", i.name+" "+version, time.Since(start).Seconds(),
		count[v1alpha1.Passed], count[v1alpha1.Failed], count[v1alpha1.Skipped])
	return results.Write(reports, i.name, version, "make claims")
}
