// Package stores runs the suites, and explores, on embedded clusters whose API server stores its objects by kine instead of etcd: in SQLite,
// NATS and PostgreSQL. It writes what deviates to docs/stores.md, and claims to docs/results. Deviations are results, not errors.
package stores

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

const (
	// kine is built by make.
	kine = "bin/kine"
	// reportFolder contains the reports, one directory for each store.
	reportFolder = "bin/stores"
	// document is the generated document.
	document = "docs/stores.md"
	// exploration is the time of the exploration of each store.
	exploration = "1m"
)

// Survey declares the flags of the survey.
func Survey(flags *flag.FlagSet) func(context.Context, []string) error {
	only := flags.String("only", "", "run only the stores with these `NAMES`: sqlite, nats or postgresql; "+document+" is not written")
	table := flags.Bool("table", false, "run nothing, and write "+document+" from the last reports")
	version := flags.String("kubernetes-version", "", "`VERSION` of the embedded Kubernetes")
	return func(ctx context.Context, _ []string) error { return run(ctx, *only, *table, *version) }
}

func run(ctx context.Context, only string, tableOnly bool, version string) error {
	chosen, err := lab.Choose(stores, func(s store) string { return s.name }, only)
	if err != nil {
		return err
	}
	var rows []row
	for _, store := range chosen {
		if !tableOnly {
			err = store.try(ctx, filepath.Join(lab.Bin, "kubernetes", "v"+version))
		}
		if err == nil {
			err = store.claim(ctx)
		}
		var made row
		if err == nil {
			made, err = rowOf(store)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", store.name, err)
		}
		fmt.Println(made)
		rows = append(rows, made)
	}
	if only != "" {
		return nil
	}
	return lab.WriteDocument(document, markdown(rows))
}

// claim writes the claim with the results of a store to docs/results.
func (s store) claim(ctx context.Context) error {
	version, err := lab.ModuleVersion(ctx, "github.com/k3s-io/kine", "tools/kine/go.mod")
	if err != nil {
		return err
	}
	return lab.Claim(s.suites(), "kine-"+s.name, version, "make stores")
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
	on := func(binaries string) []string {
		return []string{"--provider", "embedded", "--kubernetes-binaries", binaries, "--nodes", "0"}
	}
	binaries, err := s.binaries(folder, "bin", kubernetes, "")
	if err != nil {
		return err
	}
	if _, err := lab.Run(ctx, s.suites(), append([]string{"--slow", "--redact"}, on(binaries)...)...); err != nil {
		return err
	}
	// What was removed must stay gone when the store compacts, too. The suites read lists in pages, which end with 410 then.
	binaries, err = s.binaries(folder, "compacting", kubernetes, compacting)
	if err != nil {
		return err
	}
	_, err = lab.Run(ctx, s.explored(), append([]string{"explore", "--for", exploration}, on(binaries)...)...)
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
