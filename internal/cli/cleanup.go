package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/kind"
)

const (
	cleanupTimeoutFlag  = "cleanup-timeout"
	cleanupTimeoutUsage = "maximum wait until all created objects are gone, including those with finalizers of other controllers"
)

var errCleanupTimeout = errors.New("--cleanup-timeout must be greater than zero")

// cleanupFlags are the flags of `runner cleanup`.
type cleanupFlags struct {
	streams  genericiooptions.IOStreams
	clusters clusters.Flags
	runs     []string
	// namespace is the value of --namespace of the runs.
	namespace string
	// timeout limits the wait for each run's objects; 0 for the default of a run.
	timeout time.Duration
	// force also removes finalizers of other controllers.
	force bool
}

func newCleanupCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &cleanupFlags{streams: streams}
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove leftovers of killed runs",
		Long: `Cleanup deletes the leftovers of runs that were killed: their namespaces with all objects in them, and their
cluster-scoped objects. It starts controllers that such a run stopped, and restores definitions that it deleted. Runs that are still
active according to their lease are skipped unless named with --run.

Only the finalizers of runs are removed. Cleanup waits for the finalizers of other controllers, and lists those that stay: external
resources may leak without their controller. --force-finalizers removes them without waiting.

Without a cluster it only removes leftovers on this machine: embedded clusters, kind clusters that were created for a run (but
not those of --keep-cluster), and temporary files.`,
		Example: `  runner cleanup --kubeconfig FILE
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4 --force-finalizers`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	flags.clusters.AddTo(command.Flags())
	command.Flags().StringSliceVar(&flags.runs, "run", nil, "`ID` of a run to remove, active or not; repeatable")
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", "", "`NAME` of a namespace that runs were restricted to; it is not deleted")
	command.Flags().DurationVar(&flags.timeout, cleanupTimeoutFlag, environment.DefaultCleanupTimeout, cleanupTimeoutUsage)
	command.Flags().BoolVar(&flags.force, "force-finalizers", false, "also remove the finalizers of other controllers; external resources may leak")
	return command
}

func (f *cleanupFlags) run(ctx context.Context) (failed error) {
	if f.timeout <= 0 {
		return usage(errCleanupTimeout)
	}
	swept, failed := f.sweep(ctx)
	named, err := f.clusters.Clusters()
	if errors.Is(err, clusters.ErrNoCluster) && len(f.runs) == 0 {
		if swept == 0 && failed == nil {
			f.say("no leftovers on this machine; specify a cluster to clean up there (--kubeconfig)")
		}
		return failed
	}
	if err != nil {
		return usage(errors.Join(err, failed))
	}
	redactor, err := redact.For(named, redact.Scope{Files: f.clusters.Kubeconfigs})
	if err != nil {
		return usage(errors.Join(err, failed))
	}
	defer func() { failed = redactor.Error(failed) }()
	f.streams.Out = redactor.Writer(f.streams.Out)
	leave(ctx, f.again(named))
	for _, cluster := range named {
		failed = errors.Join(failed, f.clean(ctx, cluster))
	}
	return failed
}

// again are the commands that continue a cleanup that was stopped, one for each cluster, in lines.
func (f *cleanupFlags) again(named []clusters.Cluster) string {
	common := ""
	for _, run := range f.runs {
		common += " --run " + shellescape.Quote(run)
	}
	if f.namespace != "" {
		common += " --namespace " + shellescape.Quote(f.namespace)
	}
	if f.force {
		common += " --force-finalizers"
	}
	var commands []string
	for _, cluster := range named {
		commands = append(commands, "runner cleanup "+cluster.Flags+common)
	}
	return strings.Join(commands, "\n")
}

// sweep removes what killed runs left on this machine, and returns the number of removed items.
func (f *cleanupFlags) sweep(ctx context.Context) (swept int, err error) {
	clusters, failed := embedded.Sweep()
	f.sayEach("removed the embedded cluster in %s", clusters)
	folders, err := session.SweepFolders()
	f.sayEach("removed the temporary files in %s", folders)
	failed = errors.Join(failed, err)
	inKind, err := kind.Sweep(ctx)
	f.sayEach("deleted the kind cluster %s", inKind)
	failed = errors.Join(failed, err)
	if failed != nil && ctx.Err() == nil {
		failed = &exit{ExitRunError, failed}
	}
	return len(clusters) + len(folders) + len(inKind), failed
}

// clean removes leftovers from one cluster.
func (f *cleanupFlags) clean(ctx context.Context, cluster clusters.Cluster) error {
	config := cluster.Provider.RESTConfig()
	leftovers, err := f.leftovers(ctx, config)
	if errors.Is(err, environment.ErrNoNamespace) {
		return usage(fmt.Errorf("%s: %w", cluster.Name, err))
	}
	if err != nil {
		return &exit{ExitUntested, err}
	}
	for _, run := range f.runs {
		if !slices.ContainsFunc(leftovers, func(l environment.Leftover) bool { return l.Run == run }) {
			return usage(fmt.Errorf("no leftovers of run %q on %s", run, cluster.Name))
		}
	}
	var failures []error
	for _, leftover := range leftovers {
		named := slices.Contains(f.runs, leftover.Run)
		switch {
		case len(f.runs) > 0 && !named:
		case !leftover.AliveUntil.IsZero() && !named:
			f.say("run %s on %s is still active (lease valid until %s), skipping; use --run %s to remove it anyway",
				leftover.Run, cluster.Name, leftover.AliveUntil.Local().Format(time.TimeOnly), leftover.Run)
		default:
			f.say("removing run %s from %s", leftover.Run, cluster.Name)
			failures = append(failures, leftover.Remove(ctx, config, f.timeout, environment.Force(f.force)))
		}
	}
	if len(leftovers) == 0 {
		f.say("no leftovers on %s", cluster.Name)
	}
	return exitWith(ExitRunError, errors.Join(failures...))
}

// leftovers finds the leftovers of runs in their own namespaces, or in the given one.
func (f *cleanupFlags) leftovers(ctx context.Context, config *rest.Config) ([]environment.Leftover, error) {
	if f.namespace != "" {
		return environment.LeftoversIn(ctx, config, f.namespace)
	}
	return environment.Leftovers(ctx, config)
}

func (f *cleanupFlags) say(format string, values ...any) {
	_, _ = fmt.Fprintf(f.streams.Out, format+"\n", values...)
}

func (f *cleanupFlags) sayEach(format string, values []string) {
	for _, value := range values {
		f.say(format, value)
	}
}
