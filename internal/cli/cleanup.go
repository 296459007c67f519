package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/environment"
	"github.com/deletion-conformance/deletion-conformance/framework/session"
	"github.com/deletion-conformance/deletion-conformance/internal/clusters"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/kind"
)

const (
	cleanupTimeoutFlag  = "cleanup-timeout"
	cleanupTimeoutUsage = "how long to wait until everything that was made is gone, finalizers of other controllers included"
)

var errCleanupTimeout = errors.New("--cleanup-timeout must be greater than zero")

// cleanupFlags are the flags of `runner cleanup`.
type cleanupFlags struct {
	streams  genericiooptions.IOStreams
	clusters clusters.Flags
	runs     []string
	// namespace is where runs were told to stay.
	namespace string
	// timeout is how long each run's objects are waited for; 0 for as long as a run waits.
	timeout time.Duration
	// force removes finalizers of other controllers, too.
	force bool
}

func newCleanupCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &cleanupFlags{streams: streams}
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what a run left that was killed",
		Long: `Cleanup removes what runs left behind that could not do so themselves: their namespaces with everything in them,
holds included, and their cluster-scoped objects. A controller that they had stopped is started again, and a definition that they had
deleted is made again. Runs that are still alive, which their leases tell, are left alone
unless they are named with --run.

Only the finalizers of runs are removed. Finalizers of other controllers are waited for, and listed if they stay: what such a
controller was to free may be lost without it. --force-finalizers removes them without waiting.

Without a cluster it only removes what killed runs left on this machine: embedded clusters, kind clusters that were
made for a run (but not those of --keep-cluster), and temporary files.`,
		Example: `  runner cleanup --kubeconfig FILE
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4 --force-finalizers`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	flags.clusters.AddTo(command.Flags())
	command.Flags().StringSliceVar(&flags.runs, "run", nil, "`ID` of a run to remove, alive or not; may be given several times")
	command.Flags().StringVarP(&flags.namespace, "namespace", "n", "", "`NAME` of a namespace that runs were told to stay in; it is left standing")
	command.Flags().DurationVar(&flags.timeout, cleanupTimeoutFlag, environment.DefaultCleanupTimeout, cleanupTimeoutUsage)
	command.Flags().BoolVar(&flags.force, "force-finalizers", false, "remove the finalizers of other controllers, too; what these were to free may be lost")
	return command
}

func (f *cleanupFlags) run(ctx context.Context) error {
	if f.timeout <= 0 {
		return usage(errCleanupTimeout)
	}
	swept, failed := f.sweep(ctx)
	named, err := f.clusters.Clusters()
	if errors.Is(err, clusters.ErrNoCluster) && len(f.runs) == 0 {
		if swept == 0 && failed == nil {
			f.say("no embedded or kind cluster was left behind; name a cluster (--kubeconfig) to clean up there")
		}
		return failed
	}
	if err != nil {
		return usage(errors.Join(err, failed))
	}
	for _, cluster := range named {
		failed = errors.Join(failed, f.clean(ctx, cluster))
	}
	return failed
}

// sweep removes what killed runs left on this machine, and returns how many things that were.
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
		failed = &exit{ExitUntested, failed}
	}
	return len(clusters) + len(folders) + len(inKind), failed
}

// clean removes leftovers from one cluster.
func (f *cleanupFlags) clean(ctx context.Context, cluster clusters.Cluster) error {
	config := cluster.Provider.RESTConfig()
	leftovers, err := f.leftovers(ctx, config)
	if err != nil {
		return &exit{ExitUntested, err}
	}
	for _, run := range f.runs {
		if !slices.ContainsFunc(leftovers, func(l environment.Leftover) bool { return l.Run == run }) {
			return usage(fmt.Errorf("nothing of a run %q is on %s", run, cluster.Name))
		}
	}
	var failures []error
	for _, leftover := range leftovers {
		named := slices.Contains(f.runs, leftover.Run)
		switch {
		case len(f.runs) > 0 && !named:
		case !leftover.AliveUntil.IsZero() && !named:
			f.say("run %s on %s is alive (its lease is good until %s): left alone; --run %s removes it all the same",
				leftover.Run, cluster.Name, leftover.AliveUntil.Local().Format(time.TimeOnly), leftover.Run)
		default:
			f.say("removing run %s from %s", leftover.Run, cluster.Name)
			failures = append(failures, leftover.Remove(ctx, config, f.timeout, environment.Force(f.force)))
		}
	}
	if len(leftovers) == 0 {
		f.say("nothing of any run is on %s", cluster.Name)
	}
	if err := errors.Join(failures...); err != nil {
		return &exit{ExitUntested, err}
	}
	return nil
}

// leftovers finds what runs left, in namespaces of their own or in the one that is named.
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
