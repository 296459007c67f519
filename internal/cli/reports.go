package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/compare"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// read reads report.json files.
func read(files []string) ([]report.Source, error) {
	sources := make([]report.Source, len(files))
	for i, file := range files {
		read, err := report.Read(file)
		if err != nil {
			return nil, usage(err)
		}
		sources[i] = report.Source{Report: read, File: file}
	}
	return sources, nil
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
			merged, err := merge.Reports(reports...)
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
		Short:   "Regenerate all report formats from report.json",
		Example: `  runner report out/report.json --report-dir again`,
		Args:    reportFiles(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			reports, err := read(args)
			if err != nil {
				return err
			}
			return render(streams, dir, reports[0].Report)
		},
	}
	command.Flags().StringVar(&dir, "report-dir", "out", "`DIR` for the reports")
	return command
}

// verdictLines describe the result of a run: a line for the clusters, and one for kubectl if it was tested.
func verdictLines(r v1alpha1.Report) []string {
	var lines []string
	for _, verdict := range r.Verdicts {
		lines = append(lines, verdict.String())
	}
	return lines
}

// render writes every format of a report, and prints its result.
func render(streams genericiooptions.IOStreams, dir string, r v1alpha1.Report) error {
	if err := formats.Write(dir, r); err != nil {
		return usage(err)
	}
	printLines(streams.Out, append(verdictLines(r), "reports: "+dir, report.CountLine(r)))
	return nil
}

// compareFlags are the flags of compare.
type compareFlags struct {
	streams    genericiooptions.IOStreams
	factor     float64
	format     string
	failOnLost bool
}

func newCompareCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &compareFlags{streams: streams}
	command := &cobra.Command{
		Use:   "compare OLD NEW [FILE...]",
		Short: "Compare reports",
		Long: `Compare lists the behaviors that fail, with the report since which they do, those that pass again, and those that are no longer or newly
tested, from one report.json to another. It also lists durations that became longer. Of more than two reports, in any order, it is the
newest that is compared with all before it.

The exit code is 1 if a behavior regressed or is an outdated known failure, and 5 if only behaviors of kubectl did. With --fail-on-lost it
is also 1 if a behavior or a cluster is no longer tested.`,
		Example: `  runner compare before/report.json after/report.json
  runner compare --fail-on-lost before/report.json after/report.json
  runner compare --output markdown nightly/*/report.json`,
		Args: reportFiles(2, 0),
		RunE: func(_ *cobra.Command, args []string) error { return flags.run(args) },
	}
	command.Flags().BoolVar(&flags.failOnLost, "fail-on-lost", false, "also fail if a behavior or a cluster is no longer tested")
	command.Flags().Float64Var(&flags.factor, "slower", compare.DefaultFactor, "`FACTOR` by which a duration must be longer to be listed")
	command.Flags().StringVarP(&flags.format, "output", "o", "text", "`FORMAT`: text, json or markdown")
	return command
}

// run compares reports: an old one with a new one, or several in the order of their starts.
func (f *compareFlags) run(files []string) error {
	if err := checkChoice("output", f.format, "text", "json", "markdown"); err != nil {
		return usage(err)
	}
	if f.factor < 1 {
		return usage(fmt.Errorf("--slower %g: must be at least 1", f.factor))
	}
	reports, err := read(files)
	if err != nil {
		return err
	}
	if len(reports) > 2 { //nolint:mnd // more than an old and a new one
		if reports, err = compare.ByStart(reports); err != nil {
			return usage(err)
		}
	}
	history, err := compare.Over(reports, f.factor)
	if err != nil {
		return usage(err)
	}
	switch f.format {
	case "json":
		encoder := json.NewEncoder(visible.JSON(f.streams.Out))
		encoder.SetIndent("", "  ")
		err = encoder.Encode(history)
	case "markdown":
		err = markdown.WriteHistory(f.streams.Out, history)
	default:
		err = compare.Write(f.streams.Out, history)
	}
	if err != nil {
		return err
	}
	return f.conclude(history)
}

// conclude maps a comparison to an exit code.
func (f *compareFlags) conclude(compared compare.History) error {
	switch {
	case compared.HasRegressed():
		return &exit{ExitFailed, errors.New("behaviors regressed, or known failures are outdated")}
	case f.failOnLost && compared.HasLost():
		return &exit{ExitFailed, errors.New("results were lost (--fail-on-lost)")}
	case compared.KubectlHasRegressed():
		return &exit{ExitKubectl, errors.New("behaviors of kubectl regressed, or known failures of it are outdated")}
	}
	return nil
}
