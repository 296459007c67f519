// Command matrix runs the suites on several versions of the embedded Kubernetes and writes a table of the differences. matrix.yaml
// contains the versions, and the reasons of the differences. Use: make matrix, or in the repository's root
//
//	go run ./hack/matrix                       # and writes docs/versions.md and claims to docs/results
//	go run ./hack/matrix -all                  # and prints all rows
//	go run ./hack/matrix -table                # runs nothing, and uses the last reports
//	go run ./hack/matrix -- --suite cascade    # flags for the runner; docs/versions.md is not written for a partial run
//
// Missing versions are built, which takes minutes each. The reports are in bin/matrix: one directory for each version, and a merged
// report.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/internal/results"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

const (
	// binary is the runner that `make build` builds.
	binary = "bin/runner"
	// reportFolder contains the reports, one directory for each version.
	reportFolder = "bin/matrix"
	// document is the generated document.
	document = "docs/versions.md"
)

func main() {
	all := flag.Bool("all", false, "print also the rows that do not differ")
	table := flag.Bool("table", false, "run nothing, and table what was reported last")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./hack/matrix [-all] [-table] [-- FLAGS OF THE RUNNER...]   in the repository's root")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *all, *table, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, all, tableOnly bool, arguments []string) error {
	matrix, err := readMatrix()
	if err != nil {
		return err
	}
	if !tableOnly {
		if err := runOnAll(ctx, matrix.Versions, arguments); err != nil {
			return err
		}
	}
	joined, err := join(matrix.Versions)
	if err != nil {
		return err
	}
	if err := formats.Write(reportFolder, joined); err != nil {
		return err
	}
	table := tableOf(joined, matrix)
	fmt.Println()
	if err := table.print(os.Stdout, all); err != nil {
		return err
	}
	fmt.Printf("\nall of it: %s\n", filepath.Join(reportFolder, "report.html"))
	if isWhole(joined) {
		if err := writeDocument(table); err != nil {
			return err
		}
		for _, version := range matrix.Versions {
			if err := results.Write(filepath.Join(reportFolder, version), "embedded-kubernetes", version, reproduce+version); err != nil {
				return err
			}
		}
		table.checkUnused(matrix)
	}
	return errors.Join(table.problems...)
}

// reproduce is what shows the results of a version again, without that version.
const reproduce = "runner --provider embedded --nodes 0 --slow --redact --kubernetes-version "

// isWhole reports whether all behaviors were run.
func isWhole(joined v1alpha1.Report) bool { return joined.Counts[v1alpha1.Filtered] == 0 }

func writeDocument(table table) error {
	var text bytes.Buffer
	if err := table.markdown(&text); err != nil {
		return err
	}
	fmt.Println("wrote", document)
	return os.WriteFile(document, text.Bytes(), 0o644)
}

// runOnAll builds missing versions, and then runs the suites on each. Behaviors may fail.
func runOnAll(ctx context.Context, versions, arguments []string) error {
	for _, version := range versions {
		command := exec.CommandContext(ctx, binary, "cluster", "build", "--source", "kubernetes", "--kubernetes-version", version)
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("build Kubernetes %s: %w", version, err)
		}
	}
	for _, version := range versions {
		start := time.Now()
		ofRunner := append([]string{"--provider", "embedded", "--kubernetes-version", version, "--nodes", "0", "--slow", "--redact"}, arguments...)
		ran, err := runnertest.Run(ctx, binary, filepath.Join(reportFolder, version), ofRunner...)
		if err != nil {
			return fmt.Errorf("on Kubernetes %s: %w", version, err)
		}
		fmt.Printf("%-8s %3.0f s  %s\n", version, time.Since(start).Seconds(), counts(ran.Counts))
	}
	return nil
}

// counts describes the number of behaviors by outcome, without filtered ones.
func counts(count map[v1alpha1.Outcome]int) string {
	var words []string
	for _, outcome := range v1alpha1.Outcomes {
		if count[outcome] > 0 && outcome != v1alpha1.Filtered {
			words = append(words, fmt.Sprintf("%d %s", count[outcome], outcome))
		}
	}
	return strings.Join(words, ", ")
}

// join merges the reports of the versions into one report with a cluster for each.
func join(versions []string) (v1alpha1.Report, error) {
	var sources []report.Source
	for _, version := range versions {
		folder := filepath.Join(reportFolder, version)
		ran, err := runnertest.Report(folder)
		if err != nil {
			return v1alpha1.Report{}, err
		}
		for i := range ran.Clusters {
			ran.Clusters[i].Name = version
		}
		sources = append(sources, report.Source{Report: ran, File: folder})
	}
	return merge.Reports(sources...)
}
