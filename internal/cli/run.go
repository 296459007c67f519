package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/plan"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
	"github.com/deletion-conformance/deletion-conformance/internal/report/github"
	"github.com/deletion-conformance/deletion-conformance/internal/run"
	"github.com/deletion-conformance/deletion-conformance/internal/sonobuoy"
)

// runFlags are the flags of a run.
type runFlags struct {
	options  run.Options
	streams  genericiooptions.IOStreams
	clusters clusters.Flags
	provider string
	embedded embeddedFlags
	kind     kindFlags
	policies policyFlags
	trace    traceFlags
	quiet    bool
	verbose  bool
	// storeReport stores the report in the Job in which the runner runs.
	storeReport bool
	// sonobuoy runs as a plugin of Sonobuoy, which is the plugin then.
	sonobuoy bool
	plugin   *sonobuoy.Plugin
}

func newRunFlags(streams genericiooptions.IOStreams) *runFlags {
	return &runFlags{options: run.NewOptions(), streams: streams}
}

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := newRunFlags(streams)
	command := &cobra.Command{
		Use:   "runner",
		Short: "Test whether a Kubernetes cluster handles deletion correctly",
		Long: `Runner tests whether a cluster handles deletion the way Kubernetes promises: orphan, background and foreground
deletion, grace periods, finalizers.

A run creates its objects in its own namespaces, labels them with its id, and deletes them at the end. Reports are written
when the last behavior has ended, and again after the cleanup.

` + exitCodesUsage,
		Example: `  # Test the cluster of a kubeconfig and write reports
  runner --kubeconfig ~/.kube/config --report-dir out

  # Test an embedded Kubernetes: no cluster needed
  runner --provider embedded

  # Test a kind cluster that is created for the run and deleted after it
  runner --provider kind --kubernetes-version 1.35.0

  # Run the behaviors of one suite that need no controllers
  runner --kubeconfig FILE --suite finalizers --label-filter 'features: isEmpty'

  # Test a resource of your own, with a derived object or with yours
  runner --kubeconfig FILE --resource widgets.example.com --fixture widget.yaml

  # Test its controller, too
  runner --kubeconfig FILE --resource widgets.example.com \
    --controller deploy/widget-operator --controller-namespace widgets

  # Test a resource without creating anything, on a cluster that others use
  runner --kubeconfig FILE --resource widgets.example.com --no-create

  # Run on a cluster whose policies require a label, and whose nodes are tainted
  runner --kubeconfig FILE --label team=platform --pod-overlay tolerations.yaml

  # Tolerate what is known to fail, and notice when it passes
  runner --kubeconfig FILE --known-failures known-failures.yaml

  # Run one behavior, by its id
  runner --kubeconfig FILE --label-filter cascade.foreground.circle`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.complete(command); err != nil {
				return err
			}
			return flags.recorded(command.Context(), func() error {
				noteCleanup(command.Context(), flags.options.CleanupCommands())
				whole, err := flags.options.Run(command.Context())
				return flags.conclude(whole, err)
			})
		},
	}
	addGroups(command, flags.addTo, flags.addBehaviorsTo, flags.addResultsTo, flags.addRunTo)
	return command
}

// addTo adds the flags that runs, preflight and explorations share.
func (f *runFlags) addTo(groups *cliflag.NamedFlagSets) {
	o := &f.options
	addClusters(&f.clusters)(groups)
	groups.FlagSet(createdGroup).StringVar(&f.provider, "provider", "", "where the cluster comes from if none is named: "+providerUsage())
	f.embedded.addTo(groups)
	f.kind.addTo(groups, &f.embedded.created)
	f.policies.addTo(groups)
	resource := groups.FlagSet(resourceGroup)
	resource.StringSliceVar(&o.Resources.Names, resourceFlag, nil, "`RESOURCE` to test instead of ConfigMaps, as widgets.example.com or widgets.example.com/v1; repeatable: each is a column of the reports")
	resource.StringSliceVar(&o.FixtureFiles, "fixture", nil, "`FILE` with a manifest of the resource, and of what it requires to exist (default: derived from the schema, see `runner fixture`)")
	object := groups.FlagSet(objectGroup)
	object.StringVarP(&o.Namespace, "namespace", "n", "", "`NAME` of the only namespace to use: the run creates nothing elsewhere, and deletes only its own objects in it")
	object.StringVar(&o.Settings.ImageRegistry, registryFlag, "", registryUsage)
	groups.FlagSet(reportGroup).BoolVar(&o.Redact, "redact", false, "remove names of contexts, clusters, users, namespaces and servers, and addresses, from reports and output; credentials are always removed")
	groups.FlagSet(runGroup).DurationVar(&o.CleanupTimeout, cleanupTimeoutFlag, 0, cleanupTimeoutUsage+" (default is longer on a slow cluster)")
	groups.FlagSet(runGroup).Lookup(cleanupTimeoutFlag).DefValue = environment.DefaultCleanupTimeout.String()
}

const (
	resourceFlag   = "resource"
	procsFlag      = "procs"
	timeoutFlag    = "timeout"
	waitFlag       = "wait-timeout"
	settleFlag     = "settle"
	keepFailedFlag = "keep-failed"

	webhookHostFlag  = "webhook-host"
	webhookHostUsage = "`ADDRESS` at which the API server reaches webhooks on this machine, on ports 29443 to 29542 (default: loopback if the server is local, this machine's address on the network of a kind cluster that is created, and a Service of the run with --in-cluster)"
)

// addBehaviorsTo adds the flags that runs and preflight share: those about behaviors.
func (f *runFlags) addBehaviorsTo(groups *cliflag.NamedFlagSets) {
	f.addControllerTo(groups)
	o := &f.options
	addSelectionTo(groups, &o.Selection)
	selection := groups.FlagSet(selectionGroup)
	selection.BoolVar(&o.Settings.NoCreate, "no-create", false, "create nothing: run only behaviors that need reads and dry-runs alone, in the namespace default or the one of --namespace")
	selection.BoolVar(&o.Selection.Slow, "slow", false, "also run slow behaviors, which wait about a minute for the cluster's own clock or create hundreds of objects")
	resource := groups.FlagSet(resourceGroup)
	resource.BoolVar(&o.Resources.All, "all-resources", false, "test every resource whose objects can be created and deleted; cluster-wide control resources are excluded unless named with --resource, and the reports list them")
	runs := groups.FlagSet(runGroup)
	runs.IntVar(&o.Processes, procsFlag, 0, "`N` parallel workers; as many extra workers may run behaviors that mostly wait (default is more on a cluster that is far away)")
	runs.Lookup(procsFlag).DefValue = strconv.Itoa(workers.DefaultProcesses())
	runs.StringVar(&o.Kubectl, "kubectl", "", "`FILE` of the kubectl to test (default: the one in PATH; for the embedded Kubernetes, one of its version)")
	runs.StringVar(&o.Settings.WebhookHost, webhookHostFlag, "", webhookHostUsage)
}

// addControllerTo adds the flags about the controller of the resource, which runs, preflight and explorations share.
func (f *runFlags) addControllerTo(groups *cliflag.NamedFlagSets) {
	o := &f.options
	groups.FlagSet(selectionGroup).BoolVar(&o.Settings.Disruptive, "disruptive", false, "also run behaviors that disturb other users of the cluster for a while (always on for a cluster that is created for the run)")
	resource := groups.FlagSet(resourceGroup)
	resource.StringVar(&o.Controller, "controller", "", "`deploy/NAME` of the Deployment that runs the controller of the resource, to test its finalizers and the objects that it creates (--disruptive also scales it to 0 for a while)")
	resource.StringVar(&o.ControllerNamespace, "controller-namespace", "", "`NAMESPACE` of the controller's Deployment")
}

// addResultsTo adds the flags that runs and explorations share: those about results.
func (f *runFlags) addResultsTo(groups *cliflag.NamedFlagSets) {
	o := &f.options
	reports := groups.FlagSet(reportGroup)
	reports.StringVar(&o.ReportDir, "report-dir", "", "`DIR` for junit.xml, ctrf.json, report.json, report.html and summary.md; created if it does not exist")
	reports.StringVar(&o.KnownFailuresFile, "known-failures", "", "`FILE` with failures that do not fail the run: a YAML list of entries with id, reason, and optionally resource and until (a date); one that passes, or whose date is over, fails the run")
	reports.BoolVar(&o.Strict, "strict", false, "also fail when an observed behavior deviates")
	groups.FlagSet(runGroup).DurationVar(&o.Settings.Settle, settleFlag, 0, "how long to watch for something that must not happen (default is longer on a slow cluster)")
	groups.FlagSet(runGroup).Lookup(settleFlag).DefValue = session.DefaultSettle.String()
}

// addRunTo adds the flags of runs alone.
func (f *runFlags) addRunTo(groups *cliflag.NamedFlagSets) {
	o := &f.options
	groups.FlagSet(selectionGroup).StringVar(&o.Selection.Shard, "shard", "", "run only the `N/M`th part of the selection, as 2/5; `runner merge` joins the reports; job/M takes N from the index of an Indexed Job")
	runs := groups.FlagSet(runGroup)
	runs.DurationVar(&o.Timeout, timeoutFlag, 0, "maximum time for one behavior (default is longer on a slow cluster)")
	runs.Lookup(timeoutFlag).DefValue = workers.DefaultTimeout.String()
	runs.DurationVar(&o.Settings.WaitTimeout, waitFlag, 0, "maximum wait for something that must happen (default is longer on a slow cluster and where controllers delay deletion)")
	runs.Lookup(waitFlag).DefValue = session.DefaultWaitTimeout.String()
	runs.BoolVar(&o.Settings.KeepFailed, keepFailedFlag, false, "keep the objects of failed behaviors in their namespaces, and list them with the command that deletes them; quotas, cluster-scoped objects and others that affect more than these namespaces are deleted")
	runs.IntVar(&o.Settings.Scale, "scale", o.Settings.Scale, "`N` dependents of one owner in behaviors about many dependents")
	reports := groups.FlagSet(reportGroup)
	f.trace.addTo(reports)
	reports.BoolVar(&f.storeReport, storeReportFlag, false, "store the output and the report in ConfigMaps of the Job in which the runner runs, with the credentials of the pod; runner collect downloads them")
	reports.BoolVar(&f.sonobuoy, sonobuoyFlag, false, "run as a plugin of Sonobuoy: send it the progress, and hand over the reports")
	reports.BoolVarP(&f.quiet, "quiet", "q", false, "print only failures")
	reports.BoolVarP(&f.verbose, "verbose", "v", false, "also print the start and the statement of each behavior")
}

// addSelectionTo adds the flags that select behaviors.
func addSelectionTo(groups *cliflag.NamedFlagSets, selection *plan.Selection) {
	set := groups.FlagSet(selectionGroup)
	set.StringSliceVar(&selection.Suites, "suite", nil, "`SUITE` to run, the first part of ids, such as cascade; repeatable")
	set.StringArrayVar(&selection.Focus, "focus", nil, "run behaviors whose text matches this regular `EXPRESSION`; repeatable")
	set.StringArrayVar(&selection.Skip, "skip", nil, "exclude behaviors whose text matches this regular `EXPRESSION`; repeatable")
	set.StringVar(&selection.LabelFilter, "label-filter", "", "run behaviors whose labels match this Ginkgo `FILTER`: an id, a level, or 'features: containsAny gc'")
}

// complete fills in, completes and validates the options. It returns only input errors.
func (f *runFlags) complete(command *cobra.Command) error {
	ctx := command.Context()
	err := f.fill(command.Flags().Changed)
	if err == nil {
		err = f.options.Complete(ctx)
	}
	if err == nil {
		err = f.options.Validate()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return usage(err)
}

// fill sets the options that are not bound to flags.
func (f *runFlags) fill(changed func(flag string) bool) error {
	o := &f.options
	o.Version, o.Kubeconfigs, o.Out, o.ErrOut = version(), f.clusters.Kubeconfigs, f.streams.Out, f.streams.ErrOut
	for flag, zero := range map[string]bool{ // which means the default
		procsFlag: o.Processes == 0, timeoutFlag: o.Timeout == 0, cleanupTimeoutFlag: o.CleanupTimeout == 0,
		waitFlag: o.Settings.WaitTimeout == 0, settleFlag: o.Settings.Settle == 0,
	} {
		if changed(flag) && zero {
			return fmt.Errorf("--%s must be greater than zero", flag)
		}
	}
	o.DurationsFile, _ = run.DurationsFile() // durations are optional
	if err := errors.Join(f.fillJob(), f.fillPlugin()); err != nil {
		return err
	}
	switch {
	case f.quiet && f.verbose:
		return errors.New("--quiet and --verbose are mutually exclusive")
	case f.quiet:
		o.Volume = progress.Quiet
	case f.verbose:
		o.Volume = progress.Verbose
	}
	if err := errors.Join(f.fillProvider(), f.trace.fill(o)); err != nil {
		return err
	}
	return f.policies.fill(&o.Settings.Additions)
}

// conclude prints the result of a run, with a last line for programs, and maps it to an exit code. The error is that of the run itself.
func (f *runFlags) conclude(whole v1alpha1.Report, failed error) error {
	if whole.RunID == "" {
		return failed // it did not start
	}
	failed = errors.Join(failed, github.Publish(whole))
	lines := append(f.leftOut(whole), "")
	lines = append(lines, verdictLines(whole)...)
	lines = append(lines, report.FailureLines(whole)...)
	for _, cluster := range whole.Clusters {
		if cluster.Kept != "" {
			lines = append(lines, "kept on "+cluster.Name+":", cluster.Kept)
		}
	}
	if f.options.ReportDir != "" {
		lines = append(lines, "reports: "+f.options.ReportDir)
	}
	printLines(f.streams.Out, append(lines, report.CountLine(whole)))
	if code := exitCode(whole, failed); code != ExitPassed {
		return &exit{code, failed}
	}
	return nil
}

// leftOut returns the number of resources that were left out, or with --verbose their names and the reasons.
func (f *runFlags) leftOut(whole v1alpha1.Report) []string {
	if f.verbose || len(whole.LeftOut) == 0 {
		return report.LeftOut(whole)
	}
	where := "--verbose lists them"
	if f.options.ReportDir != "" {
		where += ", and the reports do"
	}
	return []string{fmt.Sprintf("%s left out; %s", report.Resources(len(whole.LeftOut)), where)}
}

func printLines(out io.Writer, lines []string) {
	for _, line := range lines {
		_, _ = fmt.Fprintln(out, line)
	}
}
