// Package matrix runs the suites on several versions of the embedded Kubernetes and writes a table of the differences, and claims.
// matrix.yaml contains the versions, and the reasons of the differences. Missing versions are built, which takes minutes each. Besides the
// report of each version there is a merged report.
package matrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/runnertest"
)

const (
	// reportFolder contains the reports, one directory for each version.
	reportFolder = "bin/matrix"
	// document is the generated document.
	document = "docs/versions.md"
)

// Survey declares the flags of the survey.
func Survey(flags *flag.FlagSet) func(context.Context, []string) error {
	all := flags.Bool("all", false, "print also the rows that do not differ")
	table := flags.Bool("table", false, "run nothing, and table what was reported last")
	return func(ctx context.Context, arguments []string) error { return run(ctx, *all, *table, arguments) }
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
		if err := lab.WriteDocument(document, table.markdown()); err != nil {
			return err
		}
		for _, version := range matrix.Versions {
			if err := lab.Claim(filepath.Join(reportFolder, version), "embedded-kubernetes", version, reproduce+version); err != nil {
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

// runOnAll builds missing versions, and then runs the suites on each. Behaviors may fail.
func runOnAll(ctx context.Context, versions, arguments []string) error {
	for _, version := range versions {
		command := exec.CommandContext(ctx, lab.Runner, "cluster", "build", "--module", "kubernetes", "--kubernetes-version", version)
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("build Kubernetes %s: %w", version, err)
		}
	}
	for _, version := range versions {
		start := time.Now()
		ofRunner := append([]string{"--provider", "embedded", "--kubernetes-version", version, "--nodes", "0", "--slow", "--redact"}, arguments...)
		ran, err := lab.Run(ctx, filepath.Join(reportFolder, version), ofRunner...)
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
	merged, err := merge.Reports(sources...)
	slices.SortFunc(merged.Clusters, func(a, b v1alpha1.Cluster) int { // a version may have been tested again later
		return slices.Index(versions, a.Name) - slices.Index(versions, b.Name)
	})
	return merged, err
}
