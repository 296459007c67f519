package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

// preflightFormats are the forms of `runner preflight`.
var preflightFormats = map[string]func(io.Writer, v1alpha1.Report) error{
	"table": preflightTable,
	"json":  preflightJSON,
}

// ofRunsAlone are flags of a run that mean nothing before one.
var ofRunsAlone = []string{
	"shard", "report-dir", "timeout", "wait-timeout", "settle", "scale", "strict", "quiet", "verbose",
}

func newPreflightCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags, format := &runFlags{streams: streams}, ""
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Check what a run can test on a cluster, without running it",
		Long: `Preflight makes the checks that a run makes before its first behaviour, and prints one row for each finding: what was
found, which behaviours are skipped because of it, and what helps. It creates a namespace for the checks and deletes it again.

Exit codes: 0 every selected behaviour can run or is skipped with a cause; 2 bad usage or input; 3 a cluster cannot be tested, or
something could not be removed.`,
		Example: `  runner preflight --kubeconfig ~/.kube/config
  runner preflight --kubeconfig FILE --suite graceful --output json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			write, known := preflightFormats[format]
			if !known {
				return usage(fmt.Errorf("--output %q: must be table or json", format))
			}
			return flags.preflight(command.Context(), write)
		},
	}
	flags.addTo(command.Flags())
	for _, name := range ofRunsAlone {
		_ = command.Flags().MarkHidden(name) // which fails for flags that there are not
	}
	command.Flags().StringVarP(&format, "output", "o", "table", "`FORMAT`: table or json")
	return command
}

// preflight makes the checks on each cluster and prints what they found.
func (f *runFlags) preflight(ctx context.Context, write func(io.Writer, v1alpha1.Report) error) error {
	chosen, resources, err := f.choose()
	if err != nil {
		return usage(err)
	}
	if err := f.findKubectl(ctx, chosen); err != nil {
		return err
	}
	named, remove, err := f.clustersFor(ctx, chosen)
	if err != nil {
		return err
	}
	defer remove()
	return f.look(ctx, chosen, named, resources, write)
}

func (f *runFlags) look(ctx context.Context, chosen plan.Plan, named []clusters.Cluster, resources run.Resources, write func(io.Writer, v1alpha1.Report) error) error {
	redactor, err := redact.For(named, f.redact, append(f.clusters.Kubeconfigs, f.settings.Kubectl.Path)...)
	if err != nil {
		return usage(err)
	}
	whole, wrong := run.Preflight(ctx, run.Options{
		ID: environment.NewRunID(), Version: version(), Clusters: named, Resources: resources, Plan: chosen,
		Pool: workers.Pool{Processes: 1}, Settings: f.settings, Namespace: f.namespace,
	})
	wrong = redactor.Error(wrong)
	fit, err := redactor.Report(whole)
	if err == nil {
		err = write(f.streams.Out, fit)
	}
	switch {
	case err != nil:
		return err
	case whole.Interrupted:
		return &exit{ExitInterrupted, wrong}
	case wrong != nil || report.Unusable(fit):
		return &exit{ExitUnreachable, wrong}
	}
	return nil
}

// preflightTable prints a row for each finding. Texts of a cluster are shown as text.
func preflightTable(out io.Writer, whole v1alpha1.Report) error {
	for _, cluster := range whole.Clusters {
		_, _ = fmt.Fprintf(out, "%s\n", report.Visible(cluster.Name))
		if cluster.Problem != "" {
			_, _ = fmt.Fprintf(out, "cannot be tested: %s\n", report.Visible(cluster.Problem))
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

// preflightCause is how many characters the cause of a finding has in a table; --output json has all of them.
const preflightCause = 300

// preflightCluster is what `runner preflight --output json` prints of a cluster.
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
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}
