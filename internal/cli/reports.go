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

// reportFiles takes at least, and at most, so many files; no upper limit when most is 0.
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

// verdictLines say what a run came to: a line for the clusters, and one for kubectl where it was tested.
func verdictLines(r v1alpha1.Report) []string {
	cluster := report.VerdictOf(r)
	lines := []string{fmt.Sprintf("%s: %s", cluster.Conclusion, cluster.Reason)}
	if kubectl, tested := report.KubectlVerdictOf(r); tested {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", report.KubectlTitle(r), kubectl.Conclusion, kubectl.Reason))
	}
	return lines
}

// render writes every form of a report, and says what it came to.
func render(streams genericiooptions.IOStreams, dir string, r v1alpha1.Report) error {
	if err := forms.Write(dir, r); err != nil {
		return usage(err)
	}
	_, err := fmt.Fprintf(streams.Out, "%s\nreports: %s\n", strings.Join(verdictLines(r), "\n"), dir)
	return err
}

func newCompareCommand(streams genericiooptions.IOStreams) *cobra.Command {
	tolerance, format := compare.DefaultTolerance, ""
	command := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Compare two reports",
		Long: `Compare lists the behaviors that regressed, were fixed, are newly skipped or newly run, or became slower from one report.json
to another. The exit code is 1 if a behavior regressed, and 5 if only behaviors of kubectl did.`,
		Example: `  runner compare before/report.json after/report.json`,
		Args:    reportFiles(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage(fmt.Errorf("--output %q: must be text or json", format))
			}
			if tolerance.Factor < 1 {
				return usage(fmt.Errorf("--slower %g: must be at least 1", tolerance.Factor))
			}
			reports, err := read(args)
			if err != nil {
				return err
			}
			comparison := compare.Reports(reports[0], reports[1], tolerance)
			if format == "json" {
				encoder := json.NewEncoder(streams.Out)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(comparison)
			} else {
				err = compare.Write(streams.Out, comparison)
			}
			switch {
			case err == nil && comparison.HasRegressed():
				return &exit{ExitFailed, errors.New("behaviors regressed")}
			case err == nil && comparison.KubectlHasRegressed():
				return &exit{ExitKubectl, errors.New("behaviors of kubectl regressed")}
			}
			return err
		},
	}
	command.Flags().Float64Var(&tolerance.Factor, "slower", tolerance.Factor, "`FACTOR` by which a behavior must be slower to be listed")
	command.Flags().StringVarP(&format, "output", "o", "text", "`FORMAT`: text or json")
	return command
}
