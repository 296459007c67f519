// Command stores runs the suites, and explores, on embedded clusters whose API server stores its objects by kine instead of etcd: in SQLite,
// NATS and PostgreSQL. It writes what deviates to docs/stores.md, and claims to docs/results. Use: make stores, or in the repository's root
//
//	go run ./hack/stores                # all stores
//	go run ./hack/stores -only sqlite   # one of them; docs/stores.md is not written
//	go run ./hack/stores -table         # run nothing, and write docs/stores.md from the last reports
//
// Deviations are results, not errors. The reports are in bin/stores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/internal/results"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

const (
	// runner and kine are built by make.
	runner, kine = "bin/runner", "bin/kine"
	// reportFolder contains the reports, one directory for each store.
	reportFolder = "bin/stores"
	// document is the generated document.
	document = "docs/stores.md"
	// exploration is the time of the exploration of each store.
	exploration = "1m"
)

func main() {
	only := flag.String("only", "", "run only the store with this `NAME`: sqlite, nats or postgresql")
	table := flag.Bool("table", false, "run nothing, and write "+document+" from the last reports")
	version := flag.String("kubernetes-version", "", "`VERSION` of the embedded Kubernetes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, *table, *version); err != nil {
		fmt.Fprintln(os.Stderr, "stores:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, only string, tableOnly bool, version string) error {
	var rows []row
	for _, store := range stores {
		if only != "" && store.name != only {
			continue
		}
		if !tableOnly {
			if err := store.try(ctx, filepath.Join("bin", "kubernetes", "v"+version)); err != nil {
				return fmt.Errorf("%s: %w", store.name, err)
			}
		}
		if err := store.claim(ctx); err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		row, err := rowOf(store)
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		fmt.Println(row)
		rows = append(rows, row)
	}
	switch {
	case len(rows) == 0:
		return fmt.Errorf("there is no store %q: use sqlite, nats or postgresql", only)
	case only != "":
		return nil
	}
	fmt.Println("wrote", document)
	return os.WriteFile(document, []byte(markdown(rows)), 0o644)
}

// claim writes the claim with the results of a store to docs/results.
func (s store) claim(ctx context.Context) error {
	version, err := results.ModuleVersion(ctx, "github.com/k3s-io/kine", "tools/kine/go.mod")
	if err != nil {
		return err
	}
	return results.Write(s.suites(), "kine-"+s.name, version, "make stores")
}

// try runs the suites and explorations on a store. Each gets a separate cluster.
func (s store) try(ctx context.Context, kubernetes string) (err error) {
	folder, err := os.MkdirTemp("", "deletion-conformance-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.Chmod(folder, 0o755); err != nil { // another user runs PostgreSQL
		return err
	}
	stop, err := s.start(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	binaries, err := s.binaries(folder, kubernetes)
	if err != nil {
		return err
	}
	cluster := []string{"--provider", "embedded", "--kubernetes-binaries", binaries, "--nodes", "0"}
	if _, err := runnertest.Run(ctx, runner, s.suites(), append([]string{"--slow", "--redact"}, cluster...)...); err != nil {
		return err
	}
	_, err = runnertest.Run(ctx, runner, s.explored(), append([]string{"explore", "--for", exploration}, cluster...)...)
	return err
}

// suites and explored are the directories of the reports.
func (s store) suites() string   { return filepath.Join(reportFolder, s.name, "suites") }
func (s store) explored() string { return filepath.Join(reportFolder, s.name, "explored") }

// resultsOf returns the results of a report, by id.
func resultsOf(folder string) ([]v1alpha1.Result, error) {
	read, err := runnertest.Report(folder)
	if err != nil {
		return nil, err
	}
	if len(read.Clusters) != 1 {
		return nil, fmt.Errorf("%s has %d clusters", folder, len(read.Clusters))
	}
	return read.Clusters[0].Results, nil
}
