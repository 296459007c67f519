package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

// preflightFormats are the formats of `runner preflight`.
var preflightFormats = map[string]func(io.Writer, v1alpha1.Report) error{
	"table": preflightTable,
	"json":  preflightJSON,
}

func newPreflightCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags, format := newRunFlags(streams), ""
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Check what a run can test on a cluster, without running it",
		Long: `Preflight makes the checks that a run makes before its first behavior, and prints one row for each finding: what was
found, which behaviors are skipped because of it, and what helps. It creates a namespace for the checks and deletes it again.

Exit codes:
  0    every selected behavior can run or is skipped with a cause
  2    invalid usage or input
  3    a cluster cannot be tested: unreachable, or refused
  4    the preflight itself failed or could not clean up
  130  interrupted`,
		Example: `  runner preflight --kubeconfig ~/.kube/config
  runner preflight --kubeconfig FILE --suite graceful --output json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkChoice("output", format, "table", "json"); err != nil {
				return usage(err)
			}
			if err := flags.complete(command); err != nil {
				return err
			}
			noteCleanup(command.Context(), flags.options.CleanupCommands())
			whole, err := flags.options.Preflight(command.Context())
			return printPreflight(streams.Out, preflightFormats[format], whole, err)
		},
	}
	addGroups(command, flags.addTo, flags.addBehaviorsTo)
	command.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT`: table or json")
	return command
}

// printPreflight prints the findings of each cluster.
func printPreflight(out io.Writer, write func(io.Writer, v1alpha1.Report) error, whole v1alpha1.Report, failed error) error {
	if whole.RunID == "" {
		return failed
	}
	failed = errors.Join(failed, write(out, whole))
	switch {
	case whole.Interrupted:
		return &exit{ExitInterrupted, failed}
	case failed != nil:
		return &exit{ExitRunError, failed}
	case report.Unusable(whole):
		return &exit{code: ExitUntested}
	}
	return nil
}

// preflightTable prints a row for each finding.
func preflightTable(out io.Writer, whole v1alpha1.Report) error {
	for _, cluster := range whole.Clusters {
		_, _ = fmt.Fprintf(out, "%s\n", cluster.Name)
		if cluster.Problem != "" {
			_, _ = fmt.Fprintf(out, "cannot be tested: %s\n", cluster.Problem)
		}
		table := printers.GetNewTabWriter(out)
		_, _ = fmt.Fprintln(table, "CHECK\tRESULT\tEFFECT\tREMEDY\tCAUSE")
		for _, finding := range cluster.Preflight {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", finding.Check, finding.Severity, finding.Effect, finding.Remedy,
				report.OneLine(finding.Cause, preflightCause))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// preflightCause limits the cause of a finding in a table, in characters; --output json contains all of it.
const preflightCause = 300

// preflightCluster is one cluster in the output of `runner preflight --output json`.
type preflightCluster struct {
	Cluster   string             `json:"cluster"`
	Problem   string             `json:"problem,omitempty"`
	Preflight []v1alpha1.Finding `json:"preflight"`
}

func preflightJSON(out io.Writer, whole v1alpha1.Report) error {
	list := []preflightCluster{}
	for _, cluster := range whole.Clusters {
		list = append(list, preflightCluster{cluster.Name, cluster.Problem, append([]v1alpha1.Finding{}, cluster.Preflight...)})
	}
	encoder := json.NewEncoder(visible.JSON(out))
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
