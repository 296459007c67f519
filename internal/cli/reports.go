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
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/markdown"
	"github.com/deletion-conformance/deletion-conformance/internal/report/merge"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
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
			sources := make([]report.Source, len(args))
			for i, file := range args {
				sources[i] = report.Source{Report: reports[i], File: file}
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
		Short:   "Regenerate all report formats from report.json",
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
		Long: `Compare lists the behaviors that regressed, were fixed, are no longer or newly tested, or became slower from one report.json
to another. The exit code is 1 if a behavior regressed or is an outdated known failure, and 5 if only behaviors of kubectl did. With
--fail-on-lost it is also 1 if a behavior or a cluster is no longer tested.

Of more than two reports, in any order, compare lists since when each behavior fails, passes again or is no longer tested, and
which durations drifted: the medians of at least three reports before and three since differ by more than the noise. The exit code
is the same, for the newest report and all before it.`,
		Example: `  runner compare before/report.json after/report.json
  runner compare --fail-on-lost before/report.json after/report.json
  runner compare --output markdown nightly/*/report.json`,
		Args: reportFiles(2, 0),
		RunE: func(command *cobra.Command, args []string) error {
			if err := flags.check(args); err != nil {
				return usage(err)
			}
			reports, err := read(args)
			if err != nil {
				return err
			}
			if len(args) > 2 { //nolint:mnd // more than an old and a new one
				return flags.history(args, reports, command.Flags().Changed("slower"))
			}
			return flags.comparison(args, reports)
		},
	}
	command.Flags().BoolVar(&flags.failOnLost, "fail-on-lost", false, "also fail if a behavior or a cluster is no longer tested")
	command.Flags().Float64Var(&flags.factor, "slower", compare.DefaultTolerance.Factor, "`FACTOR` by which a behavior must be slower to be listed; for figures of more than two reports the default is "+fmt.Sprint(compare.DefaultDrift.Factor))
	command.Flags().StringVarP(&flags.format, "output", "o", "text", "`FORMAT`: text or json, and markdown for more than two reports")
	return command
}

func (f *compareFlags) check(files []string) error {
	formats := []string{"text", "json"}
	if len(files) > 2 { //nolint:mnd // more than an old and a new one
		formats = append(formats, "markdown")
	}
	if err := checkChoice("output", f.format, formats...); err != nil {
		return err
	}
	if f.factor < 1 {
		return fmt.Errorf("--slower %g: must be at least 1", f.factor)
	}
	return nil
}

// comparison compares two reports.
func (f *compareFlags) comparison(files []string, reports []v1alpha1.Report) error {
	tolerance := compare.DefaultTolerance
	tolerance.Factor = f.factor
	comparison := compare.Reports(reports[0], reports[1], tolerance)
	comparison.Old.File, comparison.New.File = files[0], files[1]
	if len(comparison.OldOnly) == len(reports[0].Clusters) && len(comparison.NewOnly) == len(reports[1].Clusters) {
		return usage(fmt.Errorf("%s and %s have no cluster in common (%s; %s): compare reports of the same clusters, or of one cluster each",
			files[0], files[1], strings.Join(comparison.OldOnly, ", "), strings.Join(comparison.NewOnly, ", ")))
	}
	var err error
	if f.format == "json" {
		err = f.writeJSON(comparison)
	} else {
		err = compare.Write(f.streams.Out, comparison)
	}
	if err != nil {
		return err
	}
	return f.conclude(comparison)
}

// history compares more than two reports.
func (f *compareFlags) history(files []string, reports []v1alpha1.Report, fixedFactor bool) error {
	sources := make([]report.Source, len(files))
	for i, file := range files {
		sources[i] = report.Source{Report: reports[i], File: file}
	}
	ofBehaviors, ofFigures := compare.DefaultTolerance, compare.DefaultDrift
	if fixedFactor {
		ofBehaviors.Factor, ofFigures.Factor = f.factor, f.factor
	}
	history, err := compare.Over(sources, ofBehaviors, ofFigures)
	if err != nil {
		return usage(err)
	}
	switch f.format {
	case "json":
		err = f.writeJSON(history)
	case "markdown":
		err = markdown.WriteHistory(f.streams.Out, history)
	default:
		err = compare.WriteHistory(f.streams.Out, history)
	}
	if err != nil {
		return err
	}
	return f.conclude(history)
}

func (f *compareFlags) writeJSON(what any) error {
	encoder := json.NewEncoder(visible.JSON(f.streams.Out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// conclude maps a comparison to an exit code.
func (f *compareFlags) conclude(compared interface {
	HasRegressed() bool
	HasLost() bool
	KubectlHasRegressed() bool
}) error {
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
