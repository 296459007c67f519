package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/durations"
	"github.com/deletion-conformance/deletion-conformance/internal/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/forms"
	"github.com/deletion-conformance/deletion-conformance/internal/report/github"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
)

// runFlags are the flags of a run.
type runFlags struct {
	streams   genericiooptions.IOStreams
	clusters  clusters.Flags
	selection selectionFlags
	provider  string
	embedded  embeddedFlags
	kind      kindFlags
	settings  session.Settings
	kubectl   string
	processes int
	reportDir string
	timeout   time.Duration
	// fixedTimeout says that the user has chosen the timeout.
	fixedTimeout bool
	strict       bool
	quiet        bool
	verbose      bool
	redact       bool
	namespace    string
	resources    resourceFlags
	policies     policyFlags
	// cleanupTimeout is how long the run waits at its end, and fixedCleanup says that the user has chosen it.
	cleanupTimeout time.Duration
	fixedCleanup   bool
}

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &runFlags{streams: streams}
	command := &cobra.Command{
		Use:   "runner",
		Short: "Judge how a Kubernetes cluster deletes things",
		Long: `Runner judges, behaviour by behaviour, whether a cluster deletes things the way Kubernetes promises: orphan,
background and foreground deletes, grace periods, finalizers.

Everything it makes is in namespaces of its own, carries the run's id, and is gone at the end.

Exit codes: 0 conformant; 1 a behaviour of a cluster failed; 2 bad usage or input; 3 a cluster was unreachable, refused the run, or
offered nothing that could be judged, or the run itself went wrong or could not remove all it made; 5 only behaviours of
kubectl failed; 130 interrupted.
Reports are written as soon as all is judged, and once more when what the run made is removed.`,
		Example: `  # On the cluster of a kubeconfig, with reports
  runner --kubeconfig ~/.kube/config --report-dir out

  # On an embedded Kubernetes: no cluster needed
  runner --provider embedded

  # On a kind cluster that is made for the run and deleted after it
  runner --provider kind --kubernetes-version 1.35.0

  # Only what needs no controllers, of one suite
  runner --kubeconfig FILE --suite finalizers --label-filter 'needs: isEmpty'

  # What every resource promises, on one of your own: a derived object, or yours
  runner --kubeconfig FILE --resource widgets.example.com --fixture widget.yaml

  # And what its controller does about finalizers and about what it makes
  runner --kubeconfig FILE --resource widgets.example.com --controller deploy/widget-operator --controller-namespace widgets

  # What shows without creating anything, of a resource on a cluster that others depend on
  runner --kubeconfig FILE --resource widgets.example.com --no-create

  # On a cluster whose policies require a label, and whose nodes are tainted
  runner --kubeconfig FILE --label team=platform --pod-overlay tolerations.yaml

  # One behaviour, by its id
  runner --kubeconfig FILE --label-filter cascade.foreground.circle`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			given := command.Flags().Changed
			flags.settings.FixedSettle, flags.settings.FixedWait, flags.fixedTimeout = given("settle"), given("wait-timeout"), given("timeout")
			flags.fixedCleanup = given(cleanupTimeoutFlag)
			return flags.run(command.Context())
		},
	}
	flags.addTo(command.Flags())
	return command
}

func (f *runFlags) addTo(set *pflag.FlagSet) {
	f.clusters.AddTo(set)
	f.selection.addTo(set)
	f.embedded.addTo(set)
	f.resources.addTo(set)
	f.kind.addTo(set, &f.embedded.created)
	f.policies.addTo(set)
	set.StringVar(&f.selection.Shard, "shard", "", "judge only the `N/M`th part of what is selected, as 2/5; `runner merge` joins the reports")
	set.StringVar(&f.provider, "provider", "", "where the cluster comes from when none is named: "+providerUsage())
	set.IntVar(&f.processes, "procs", workers.DefaultProcesses(), "`N` behaviours to judge at the same time, each in a process and a namespace of its own; up to as many that mostly wait run beside them")
	set.StringVar(&f.reportDir, "report-dir", "", "`DIR` for junit.xml, report.json, report.html and summary.md; made if need be")
	set.StringVarP(&f.namespace, "namespace", "n", "", "`NAME` of the only namespace to use: the run makes nothing outside, and removes only what it made in it")
	set.BoolVar(&f.redact, "redact", false, "take names of contexts, clusters and users, and addresses, out of reports and output; credentials never are in them")
	set.DurationVar(&f.timeout, "timeout", workers.DefaultTimeout, "how long one behaviour may take (longer on a slow cluster, if not given)")
	set.DurationVar(&f.settings.WaitTimeout, "wait-timeout", session.DefaultWaitTimeout, "how long to wait for something that must happen (if not given, longer on a slow cluster and where controllers hold what is deleted)")
	set.DurationVar(&f.settings.Settle, "settle", session.DefaultSettle, "how long to go on watching for something that must not happen (longer on a slow cluster, if not given)")
	set.DurationVar(&f.cleanupTimeout, cleanupTimeoutFlag, environment.DefaultCleanupTimeout, cleanupTimeoutUsage+" (longer on a slow cluster, if not given)")
	set.IntVar(&f.settings.Scale, "scale", session.DefaultScale, "`N` dependents of one owner, to see many collected")
	set.StringVar(&f.settings.WebhookHost, "webhook-host", "", "`ADDRESS` under which the API server can reach a webhook on this machine, on ports 29443 to 29542 (default: loopback, if the server is there too, and this machine's address on the network of a kind cluster that is made)")
	set.StringVar(&f.settings.ImageRegistry, registryFlag, "", registryUsage)
	set.StringVar(&f.kubectl, "kubectl", "", "`FILE` of the kubectl to judge (default: the one in PATH; for the embedded Kubernetes one of its version)")
	set.BoolVar(&f.settings.Disruptive, "disruptive", false, "run also what disturbs others on the cluster for a while (one that is made for the run has no others)")
	set.BoolVar(&f.settings.NoCreate, "no-create", false, "create nothing: judge what shows in reads and dry-runs alone, in the namespace default or the one of --namespace")
	set.BoolVar(&f.strict, "strict", false, "fail when an observed behaviour deviates, too")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "say only what did not hold")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "say also what begins, and what each behaviour promises")
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
	chosen, resources, err := f.choose()
	if err != nil {
		return usage(err)
	}
	if err := f.findKubectl(ctx, chosen); err != nil {
		return err
	}
	clusters, remove, err := f.clustersFor(ctx, chosen)
	if err != nil {
		return err
	}
	defer remove()
	return f.conduct(ctx, chosen, clusters, resources)
}

// choose reads what the flags select: behaviours, and resources to test in place of ConfigMaps.
func (f *runFlags) choose() (plan.Plan, run.Resources, error) {
	if err := f.check(); err != nil {
		return plan.Plan{}, run.Resources{}, err
	}
	resources, err := f.resources.resources()
	if err != nil {
		return plan.Plan{}, resources, err
	}
	if err := f.policies.applyTo(&f.settings); err != nil {
		return plan.Plan{}, resources, err
	}
	if f.settings.Controller, err = f.resources.controllerNamed(); err != nil {
		return plan.Plan{}, resources, err
	}
	if f.settings.NoCreate && f.settings.Controller.IsNamed() {
		return plan.Plan{}, resources, errors.New("--controller and --no-create contradict each other: what a controller does shows in objects that are made")
	}
	f.selection.AnyResource, f.selection.NoCreate = f.resources.given(), f.settings.NoCreate
	f.selection.Controller = f.settings.Controller.IsNamed()
	chosen, err := plan.Make(f.selection.Selection)
	return chosen, resources, err
}

// check refuses values that no run can use.
func (f *runFlags) check() error {
	switch {
	case f.processes < 1:
		return fmt.Errorf("--procs %d: it takes at least one process", f.processes)
	case f.settings.Scale < 1:
		return fmt.Errorf("--scale %d: an owner without dependents shows nothing", f.settings.Scale)
	case f.quiet && f.verbose:
		return errors.New("--quiet and --verbose contradict each other: give one")
	case f.timeout <= 0 || f.settings.WaitTimeout <= 0 || f.settings.Settle < 0:
		return errors.New("--timeout and --wait-timeout must be longer than nothing, and --settle cannot be negative")
	}
	if f.cleanupTimeout <= 0 {
		return errCleanupTimeout
	}
	if err := errors.Join(workers.Supported(), f.checkProvider()); err != nil {
		return err
	}
	if err := checkRegistry(f.settings.ImageRegistry); err != nil || f.reportDir == "" {
		return err
	}
	if err := os.MkdirAll(f.reportDir, 0o755); err != nil {
		return fmt.Errorf("create the report folder %s: %w; name another with --report-dir", f.reportDir, err)
	}
	return nil
}

// conduct runs the behaviours, and writes and says what came of it.
func (f *runFlags) conduct(ctx context.Context, chosen plan.Plan, clusters []clusters.Cluster, resources run.Resources) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the runner's own binary, to start workers: %w", err)
	}
	redactor, err := redact.For(clusters, f.redact, append(f.clusters.Kubeconfigs, f.settings.Kubectl.Path)...)
	if err != nil {
		return usage(err)
	}
	remembered, file := f.remembered()
	pool := workers.Pool{Executable: executable, Processes: f.processes, Timeout: f.timeout, FixedTimeout: f.fixedTimeout, Durations: remembered}
	shown := redactor.Progress(progress.New(f.streams.Out, len(clusters)*resources.Columns(), pool.Workers(chosen.Chosen()), f.volume()))
	whole, wrong := run.Run(ctx, run.Options{
		ID: environment.NewRunID(), Version: version(), Shard: f.selection.Shard, Clusters: clusters, Resources: resources, Plan: chosen, Pool: pool,
		Settings: f.settings, Namespace: f.namespace, CleanupTimeout: f.cleanupPatience(), Strict: f.strict, Progress: shown,
		// What cannot be written is told when it is written for the last time.
		Judged: func(judged v1alpha1.Report) {
			if fit, err := redactor.Report(judged); err == nil {
				_ = f.write(fit)
			}
		},
	})
	if err := shown.Close(); err != nil {
		return err
	}
	if file != "" && !whole.Interrupted {
		// The next run is slower without; nobody needs to know.
		_ = durations.Save(file, remembered, whole)
	}
	return f.finish(redactor, whole, wrong)
}

// cleanupPatience is how long the run waits at its end; 0 where that depends on the cluster.
func (f *runFlags) cleanupPatience() time.Duration {
	if f.fixedCleanup {
		return f.cleanupTimeout
	}
	return 0
}

// finish writes and says what came of the run, fit for those who see it.
func (f *runFlags) finish(redactor *redact.Redactor, whole v1alpha1.Report, wrong error) error {
	if f.verbose {
		for _, stack := range crash.Stacks(wrong) {
			_, _ = fmt.Fprintf(f.streams.ErrOut, "%s\n", redactor.Text(string(stack)))
		}
	}
	wrong = redactor.Error(wrong)
	fit, err := redactor.Report(whole)
	if err != nil {
		return errors.Join(err, wrong)
	}
	if err := f.write(fit); err != nil {
		return usage(errors.Join(err, wrong))
	}
	return f.conclude(fit, wrong)
}

// write writes the reports, where any are wanted.
func (f *runFlags) write(whole v1alpha1.Report) error {
	if f.reportDir == "" {
		return nil
	}
	return forms.Write(f.reportDir, whole)
}

func (f *runFlags) remembered() (map[string]time.Duration, string) {
	file, err := durations.File()
	if err != nil {
		return map[string]time.Duration{}, ""
	}
	return durations.Load(file), file
}

// conclude prints what the run came to, with a last line that machines can read. What went wrong with the run itself, and what
// it left, is still to be said.
func (f *runFlags) conclude(whole v1alpha1.Report, wrong error) error {
	wrong = errors.Join(wrong, github.Publish(whole))
	for _, line := range report.LeftOut(whole) {
		_, _ = fmt.Fprintln(f.streams.Out, line)
	}
	_, _ = fmt.Fprintln(f.streams.Out)
	for _, line := range verdictLines(whole) {
		_, _ = fmt.Fprintln(f.streams.Out, line)
	}
	for _, line := range report.Unmet(whole) {
		_, _ = fmt.Fprintln(f.streams.Out, line)
	}
	if f.reportDir != "" {
		_, _ = fmt.Fprintf(f.streams.Out, "reports: %s\n", f.reportDir)
	}
	_, _ = fmt.Fprintln(f.streams.Out, report.TallyOf(whole))
	if code := exitCode(whole, wrong); code != ExitConformant {
		return &exit{code, wrong}
	}
	return nil
}

// exitCode is that of a run. The result of the clusters decides; kubectl's failures count where the clusters are conformant.
func exitCode(whole v1alpha1.Report, wrong error) int {
	cluster := report.VerdictOf(whole).Conclusion
	kubectl, tested := report.KubectlVerdictOf(whole)
	switch {
	case whole.Interrupted:
		return ExitInterrupted
	case cluster == report.Nonconformant:
		return ExitNonconformant
	case cluster != report.Conformant && cluster != report.NotTested:
		return ExitUnreachable
	case tested && kubectl.Conclusion == report.Nonconformant:
		return ExitKubectl
	case tested && kubectl.Conclusion != report.Conformant, wrong != nil:
		return ExitUnreachable
	}
	return ExitConformant
}
