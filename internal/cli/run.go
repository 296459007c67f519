package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/durations"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/forms"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
)

// runFlags are the flags of a run.
type runFlags struct {
	streams     genericiooptions.IOStreams
	target      clusters.Flags
	selection   selectionFlags
	provider    string
	local       localFlags
	processes   int
	reportDir   string
	timeout     time.Duration
	patience    time.Duration
	settle      time.Duration
	webhookHost string
	registry    string
	strict      bool
	quiet       bool
	verbose     bool
}

const (
	// providerLocal is the --provider that makes an embedded Kubernetes.
	providerLocal = "local"
	// processesPerCore and mostProcesses give the default of --procs. Workers mostly wait for the cluster, so there are
	// more of them than cores; `make bench` compares numbers.
	processesPerCore = 4
	mostProcesses    = 8
	// defaultTimeout is far beyond what any behaviour takes on a healthy cluster, and above what a spec waits for a pod to
	// start and to end on a node that is busy.
	defaultTimeout = 7 * time.Minute
)

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &runFlags{streams: streams}
	command := &cobra.Command{
		Use:   "runner",
		Short: "Judge how a Kubernetes cluster deletes things",
		Long: `Runner judges, behaviour by behaviour, whether a cluster deletes things the way Kubernetes promises: orphan,
background and foreground deletes, grace periods, finalizers.

Everything it makes is in namespaces of its own, carries the run's id, and is gone at the end.

Exit codes: 0 conformant; 1 a behaviour failed; 2 bad usage or input; 3 a cluster was unreachable, refused the run, or
offered nothing that could be judged; 130 interrupted (reports are still written).`,
		Example: `  # On the cluster of a kubeconfig, with reports
  runner --kubeconfig ~/.kube/config --report-dir out

  # On an embedded Kubernetes: no cluster needed
  runner --provider local

  # Only what needs no controllers, of one suite
  runner --kubeconfig FILE --suite finalizers --label-filter 'needs: isSubsetOf api'

  # One behaviour, by its id
  runner --kubeconfig FILE --label-filter cascade.foreground.circle`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	set := command.Flags()
	flags.target.AddTo(set)
	flags.selection.addTo(set)
	flags.local.addTo(set)
	set.StringVar(&flags.selection.Shard, "shard", "", "judge only the `N/M`th part of what is selected, as 2/5; `runner merge` joins the reports")
	set.StringVar(&flags.provider, "provider", "", "where the cluster comes from when none is named: local (an embedded Kubernetes)")
	set.IntVar(&flags.processes, "procs", min(processesPerCore*runtime.NumCPU(), mostProcesses), "`N` behaviours to judge at the same time, each in a process and a namespace of its own")
	set.StringVar(&flags.reportDir, "report-dir", "", "`FOLDER` for junit.xml, report.json, report.html and summary.md; made if need be")
	set.DurationVar(&flags.timeout, "timeout", defaultTimeout, "how long one behaviour may take")
	set.DurationVar(&flags.patience, "patience", framework.DefaultPatience, "how long to wait for something that must happen")
	set.DurationVar(&flags.settle, "settle", framework.DefaultSettle, "how long to go on watching for something that must not happen")
	set.StringVar(&flags.webhookHost, "webhook-host", "", "`ADDRESS` under which the API server can reach a webhook on this machine (default: loopback, if the server is there too)")
	set.StringVar(&flags.registry, registryFlag, "", registryUsage)
	set.BoolVar(&flags.strict, "strict", false, "fail when an observed behaviour deviates, too")
	set.BoolVarP(&flags.quiet, "quiet", "q", false, "say only what did not hold")
	set.BoolVarP(&flags.verbose, "verbose", "v", false, "say also what begins, and what each behaviour promises")
	return command
}

// volume is how much the run is to say.
func (f *runFlags) volume() progress.Volume {
	switch {
	case f.quiet:
		return progress.Quiet
	case f.verbose:
		return progress.Verbose
	}
	return progress.Normal
}

// run runs the suites and maps the verdict to an error with an exit code.
func (f *runFlags) run(ctx context.Context) error {
	if err := f.check(); err != nil {
		return usage(err)
	}
	chosen, err := plan.Make(f.selection.Selection)
	if err != nil {
		return usage(err)
	}
	clusters, remove, err := f.clusters(ctx, chosen)
	if err != nil {
		return err
	}
	defer remove()
	return f.conduct(ctx, chosen, clusters)
}

// check refuses values that no run can use.
func (f *runFlags) check() error {
	switch {
	case f.provider != "" && f.provider != providerLocal:
		return fmt.Errorf("there is no provider %q: the provider is %s", f.provider, providerLocal)
	case f.provider == providerLocal && f.target.Given() != "":
		return fmt.Errorf("--provider %s and %s contradict each other: give one", providerLocal, f.target.Given())
	case f.provider == providerLocal && f.registry != "":
		return fmt.Errorf("--provider %s and --%s contradict each other: the embedded Kubernetes brings its images along", providerLocal, registryFlag)
	case f.provider != providerLocal && f.local.given() != "":
		return fmt.Errorf("%s is for the embedded Kubernetes: give --provider %s too", f.local.given(), providerLocal)
	case f.processes < 1:
		return fmt.Errorf("--procs %d: it takes at least one process", f.processes)
	case f.quiet && f.verbose:
		return errors.New("--quiet and --verbose contradict each other: give one")
	case f.timeout <= 0 || f.patience <= 0 || f.settle < 0:
		return errors.New("--timeout and --patience must be longer than nothing, and --settle cannot be negative")
	}
	if err := checkRegistry(f.registry); err != nil || f.reportDir == "" {
		return err
	}
	if err := os.MkdirAll(f.reportDir, 0o755); err != nil {
		return fmt.Errorf("create the report folder %s: %w; name another with --report-dir", f.reportDir, err)
	}
	return nil
}

// clusters are the clusters that the flags name, and how to remove those that were made.
func (f *runFlags) clusters(ctx context.Context, chosen plan.Plan) ([]run.Cluster, func(), error) {
	if f.provider == providerLocal {
		return f.localCluster(ctx, chosen)
	}
	targets, err := f.target.Targets()
	if err != nil {
		return nil, nil, usage(err)
	}
	var clusters []run.Cluster
	for _, target := range targets {
		clusters = append(clusters, run.Cluster{Target: target})
	}
	return clusters, func() {}, nil
}

// localCluster makes an embedded cluster. Its maker vouches for what it consists of, so that a part which does not do
// its work fails behaviours instead of having them skipped.
func (f *runFlags) localCluster(ctx context.Context, chosen plan.Plan) ([]run.Cluster, func(), error) {
	wanted := func(behavior plan.Behavior) bool { return slices.Contains(behavior.Needs, v1alpha1.Node) }
	local, err := f.local.create(ctx, f.streams.ErrOut, slices.ContainsFunc(chosen.Chosen(), wanted))
	if err != nil {
		return nil, nil, err
	}
	cluster := run.Cluster{
		Target: clusters.Target{
			Name:       providerLocal,
			Connection: clusters.Existing(local.GetKubeconfig(), local.GetKubectlContext()),
		},
		Vouched:   local.vouched,
		Absent:    local.absent,
		Control:   local.control,
		Ephemeral: true,
	}
	return []run.Cluster{cluster}, func() { f.local.destroy(local, f.streams.ErrOut) }, nil
}

func (f *runFlags) conduct(ctx context.Context, chosen plan.Plan, clusters []run.Cluster) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the runner's own binary, to start workers: %w", err)
	}
	remembered, file := f.remembered()
	shown := progress.New(f.streams.Out, len(clusters), f.processes, f.volume())
	whole, left := run.Run(ctx, run.Options{
		ID: framework.NewRunID(), Version: version(), Shard: f.selection.Shard, Clusters: clusters, Plan: chosen,
		Processes: f.processes, Settle: f.settle, Patience: f.patience, Timeout: f.timeout,
		WebhookHost: f.webhookHost, ImageRegistry: f.registry, Strict: f.strict, Executable: executable, Durations: remembered,
		Progress: shown,
	})
	if err := shown.Close(); err != nil {
		return err
	}
	if file != "" && !whole.Interrupted {
		// The next run is slower without; nobody needs to know.
		_ = durations.Save(file, remembered, whole)
	}
	if f.reportDir != "" {
		if err := forms.Write(f.reportDir, whole); err != nil {
			return usage(errors.Join(err, left))
		}
	}
	return errors.Join(f.conclude(whole), left)
}

func (f *runFlags) remembered() (map[string]time.Duration, string) {
	file, err := durations.File()
	if err != nil {
		return map[string]time.Duration{}, ""
	}
	return durations.Load(file), file
}

// conclude prints what the run came to, with a last line that machines can read.
func (f *runFlags) conclude(whole v1alpha1.Report) error {
	verdict, count := report.VerdictOf(whole), whole.Count()
	failed := count[v1alpha1.Failed] + count[v1alpha1.Errored] + count[v1alpha1.Interrupted]
	skipped := count[v1alpha1.Skipped] + count[v1alpha1.Filtered] + count[v1alpha1.Deviated]
	if f.strict {
		failed, skipped = failed+count[v1alpha1.Deviated], skipped-count[v1alpha1.Deviated]
	}
	_, _ = fmt.Fprintf(f.streams.Out, "\n%s: %s\n", verdict.Conclusion, report.Visible(verdict.Reason))
	if f.reportDir != "" {
		_, _ = fmt.Fprintf(f.streams.Out, "reports: %s\n", f.reportDir)
	}
	_, _ = fmt.Fprintf(f.streams.Out, "%d passed, %d failed, %d skipped\n", count[v1alpha1.Passed], failed, skipped)
	switch {
	case whole.Interrupted:
		return &exit{ExitInterrupted, errSaid}
	case verdict.Conclusion == report.Conformant:
		return nil
	case verdict.Conclusion == report.Nonconformant:
		return &exit{ExitNonconformant, errSaid}
	}
	return &exit{ExitUnreachable, errSaid}
}

// errSaid is for what was said already.
var errSaid = errors.New("")
