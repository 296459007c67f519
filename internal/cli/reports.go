package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/forms"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
)

// read reads report.json files.
func read(files []string) ([]v1alpha1.Report, error) {
	reports := make([]v1alpha1.Report, len(files))
	for i, file := range files {
		var err error
		if reports[i], err = report.Read(file); err != nil {
			return nil, usage(err)
		}
	}
	return reports, nil
}

// reportFiles requires a number of files; a maximum of 0 means no limit.
func reportFiles(least, most int) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) < least || most > 0 && len(args) > most {
			return usage(fmt.Errorf("%s requires report.json files: %s (see `%s --help`)", command.CommandPath(), command.Use, command.CommandPath()))
		}
		return nil
	}
}

func newMergeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use:   "merge FILE FILE...",
		Short: "Merge the reports of shards or clusters into one",
		Example: `  runner --kubeconfig FILE --shard 1/2 --report-dir one
  runner --kubeconfig FILE --shard 2/2 --report-dir two
  runner merge one/report.json two/report.json --report-dir whole`,
		Args: reportFiles(2, 0),
		RunE: func(_ *cobra.Command, args []string) error {
			reports, err := read(args)
			if err != nil {
				return err
			}
			sources := make([]merge.Source, len(args))
			for i, file := range args {
				sources[i] = merge.Source{Report: reports[i], File: file}
			}
			merged, err := merge.Reports(sources...)
			if err != nil {
				return usage(err)
			}
			return render(streams, dir, merged)
		},
	}
	command.Flags().StringVar(&dir, "report-dir", "out", "`DIR` for the merged reports")
	return command
}

func newReportCommand(streams genericiooptions.IOStreams) *cobra.Command {
	dir := ""
	command := &cobra.Command{
		Use:     "report FILE",
		Short:   "Write every form of a report again from its report.json",
		Example: `  runner report out/report.json --report-dir again`,
		Args:    reportFiles(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			reports, err := read(args)
			if err != nil {
				return err
			}
			return render(streams, dir, reports[0])
		},
	}
	command.Flags().StringVar(&dir, "report-dir", "out", "`DIR` for the reports")
	return command
}

// verdictLines describe the result of a run: a line for the clusters, and one for kubectl if it was tested.
func verdictLines(r v1alpha1.Report) []string {
	lines := []string{report.VerdictOf(r).String()}
	if kubectl, tested := report.KubectlVerdictOf(r); tested {
		lines = append(lines, report.KubectlTitle(r)+": "+kubectl.String())
	}
	return lines
}

// render writes every form of a report, and prints its result.
func render(streams genericiooptions.IOStreams, dir string, r v1alpha1.Report) error {
	if err := forms.Write(dir, r); err != nil {
		return usage(err)
	}
	printLines(streams.Out, append(verdictLines(r), "reports: "+dir, report.TallyOf(r).String()))
	return nil
}

func newCompareCommand(streams genericiooptions.IOStreams) *cobra.Command {
	tolerance, format, failOnLost := compare.DefaultTolerance, "", false
	command := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Compare two reports",
		Long: `Compare lists the behaviors that regressed, were fixed, are no longer or newly tested, or became slower from one report.json
to another. The exit code is 1 if a behavior regressed or is an outdated known failure, and 5 if only behaviors of kubectl did. With
--fail-on-lost it is also 1 if a behavior or a cluster is no longer tested.`,
		Example: `  runner compare before/report.json after/report.json
  runner compare --fail-on-lost before/report.json after/report.json`,
		Args: reportFiles(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkChoice("output", format, "text", "json"); err != nil {
				return usage(err)
			}
			if tolerance.Factor < 1 {
				return usage(fmt.Errorf("--slower %g: must be at least 1", tolerance.Factor))
			}
			reports, err := read(args)
			if err != nil {
				return err
			}
			comparison := compare.Reports(reports[0], reports[1], tolerance)
			comparison.Old.File, comparison.New.File = args[0], args[1]
			if len(comparison.OldOnly) == len(reports[0].Clusters) && len(comparison.NewOnly) == len(reports[1].Clusters) {
				return usage(fmt.Errorf("%s and %s have no cluster in common (%s; %s): compare reports of the same clusters, or of one cluster each",
					args[0], args[1], strings.Join(comparison.OldOnly, ", "), strings.Join(comparison.NewOnly, ", ")))
			}
			if format == "json" {
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(comparison)
			} else {
				err = compare.Write(streams.Out, comparison)
			}
			switch {
			case err == nil && comparison.HasRegressed():
				return &exit{ExitFailed, errors.New("behaviors regressed, or known failures are outdated")}
			case err == nil && failOnLost && comparison.HasLost():
				return &exit{ExitFailed, errors.New("results were lost (--fail-on-lost)")}
			case err == nil && comparison.KubectlHasRegressed():
				return &exit{ExitKubectl, errors.New("behaviors of kubectl regressed, or known failures of it are outdated")}
			}
			return err
		},
	}
	command.Flags().BoolVar(&failOnLost, "fail-on-lost", false, "also fail if a behavior or a cluster is no longer tested")
	command.Flags().Float64Var(&tolerance.Factor, "slower", tolerance.Factor, "`FACTOR` by which a behavior must be slower to be listed")
	command.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	return command
}
