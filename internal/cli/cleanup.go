package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
	"github.com/deletion-conformance/deletion-conformance/provider/kind"
	"github.com/deletion-conformance/deletion-conformance/provider/statedir"
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
	// controller and controllerNamespace are those of the run.
	controller, controllerNamespace string
	// dryRun only lists, and yes does not ask.
	dryRun, yes bool
	removal     environment.RemoveOptions
}

func newCleanupCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := &cleanupFlags{streams: streams}
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove leftovers of killed runs",
		Long: `Cleanup deletes the leftovers of runs that were killed: their namespaces with all objects in them, their
cluster-scoped objects, and the Events about those. It lists them first. In a terminal it asks before it deletes; elsewhere it requires --yes or --run.
Runs that are still active according to their lease are skipped unless named with --run. So are those that kept the objects of failed
behaviors (--keep-failed), which are listed as kept.

An object belongs to a run if its name contains the id of the run. Objects that only carry the label of a run are listed, and stay.

Only the finalizers of runs are removed. Cleanup waits for the finalizers of other controllers, and lists those that stay: external
resources may leak without their controller. --force-finalizers removes them without waiting.

Without a cluster it only removes leftovers on this machine: embedded clusters, kind clusters that were created for a run (but
not those of --keep-cluster), and temporary files.`,
		Example: `  runner cleanup --kubeconfig FILE --dry-run
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4
  runner cleanup --kubeconfig FILE --run dcx7k2p9q4 --force-finalizers`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command.Context()) },
	}
	addGroups(command, addClusters(&flags.clusters))
	set := command.Flags()
	set.StringSliceVar(&flags.runs, "run", nil, "`ID` of a run to remove, active or not; repeatable")
	set.BoolVar(&flags.dryRun, "dry-run", false, "only list what would be removed")
	set.BoolVarP(&flags.yes, "yes", "y", false, "do not ask before removing")
	set.StringVarP(&flags.namespace, "namespace", "n", "", "`NAME` of a namespace that runs were restricted to; it is not deleted")
	set.StringVar(&flags.controller, "controller", "", "`deploy/NAME` of the controller of the run, which is scaled back if the run stopped it")
	set.StringVar(&flags.controllerNamespace, "controller-namespace", "", "`NAME` of the controller's namespace")
	set.DurationVar(&flags.removal.Timeout, cleanupTimeoutFlag, environment.DefaultCleanupTimeout, cleanupTimeoutUsage)
	set.BoolVar(&flags.removal.ForceFinalizers, "force-finalizers", false, "also remove the finalizers of other controllers; external resources may leak")
	return command
}

func (f *cleanupFlags) run(ctx context.Context) (failed error) {
	if f.removal.Timeout <= 0 {
		return usage(errCleanupTimeout)
	}
	if f.controller != "" || f.controllerNamespace != "" {
		named, err := session.ParseController(f.controller, f.controllerNamespace)
		if err != nil {
			return usage(err)
		}
		f.removal.Controller = named
	}
	swept, failed := f.sweep(ctx)
	named, err := f.clusters.Clusters()
	if errors.Is(err, clusters.ErrNoCluster) && len(f.runs) == 0 {
		if swept == 0 && failed == nil {
			f.print("no leftovers on this machine; specify a cluster to clean up there (--kubeconfig)")
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
	noteCleanup(ctx, f.resumeCommands(named))
	for _, cluster := range named {
		failed = errors.Join(failed, f.clean(ctx, cluster))
	}
	return failed
}

// resumeCommands are the commands that continue a cleanup that was stopped, one for each cluster, in lines.
func (f *cleanupFlags) resumeCommands(named []clusters.Cluster) string {
	common := ""
	for _, run := range f.runs {
		common += " --run " + shellescape.Quote(run)
	}
	if f.namespace != "" {
		common += " --namespace " + shellescape.Quote(f.namespace)
	}
	if f.controller != "" {
		common += " --controller " + shellescape.Quote(f.controller) + " --controller-namespace " + shellescape.Quote(f.controllerNamespace)
	}
	if f.yes {
		common += " --yes"
	}
	if f.removal.ForceFinalizers {
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
	if f.dryRun {
		for _, kind := range []statedir.Kind{statedir.Embedded, statedir.Kubectl, statedir.InKind} {
			stale, failed := statedir.Stale(kind, func(string) error { return nil })
			f.printEach("would remove %s and what was started for it", stale)
			swept, err = swept+len(stale), errors.Join(err, failed)
		}
		return swept, exitWith(ExitRunError, err)
	}
	clusters, failed := embedded.Sweep()
	f.printEach("removed the embedded cluster in %s", clusters)
	folders, err := session.SweepFolders()
	f.printEach("removed the temporary files in %s", folders)
	failed = errors.Join(failed, err)
	inKind, err := kind.Sweep(ctx)
	f.printEach("deleted the kind cluster %s", inKind)
	failed = errors.Join(failed, err)
	if failed != nil && ctx.Err() == nil {
		failed = &exit{ExitRunError, failed}
	}
	return len(clusters) + len(folders) + len(inKind), failed
}

// clean removes leftovers from one cluster.
func (f *cleanupFlags) clean(ctx context.Context, cluster clusters.Cluster) error {
	config := cluster.Provider.RESTConfig()
	found, err := environment.FindLeftovers(ctx, config, f.namespace)
	if errors.Is(err, environment.ErrNoNamespace) {
		return usage(fmt.Errorf("%s: %w", cluster.Name, err))
	}
	if err != nil {
		return &exit{ExitUntested, err}
	}
	if err := environment.FindController(ctx, config, f.removal.Controller); err != nil {
		return &exit{ExitUntested, err}
	}
	for _, run := range f.runs {
		switch {
		case slices.ContainsFunc(found.Leftovers, func(l environment.Leftover) bool { return l.Run == run }):
		case f.removal.Controller.IsDeployment(): // which an earlier cleanup may not have started again
			found.Leftovers = append(found.Leftovers, environment.Stopped(run, f.namespace))
		default:
			return usage(fmt.Errorf("no leftovers of run %q on %s", run, cluster.Name))
		}
	}
	selected := f.selected(cluster, found)
	switch {
	case len(found.Leftovers) == 0 && len(found.Unread) == 0:
		f.print("no leftovers on %s", cluster.Name)
		return nil
	case len(found.Leftovers) == 0:
		f.print("no other leftovers on %s", cluster.Name)
		return exitWith(ExitRunError, found.Failed)
	case len(selected) == 0 || f.dryRun:
		return exitWith(ExitRunError, found.Failed)
	}
	if err := f.confirm(); err != nil {
		return err
	}
	failures := []error{found.Failed}
	for _, leftover := range selected {
		f.print("removing run %s from %s", leftover.Run, cluster.Name)
		failures = append(failures, leftover.Remove(ctx, config, f.removal))
	}
	return exitWith(ExitRunError, errors.Join(failures...))
}

// selected lists what was found, and returns the leftovers to remove.
func (f *cleanupFlags) selected(cluster clusters.Cluster, found *environment.Found) (selected []environment.Leftover) {
	for _, leftover := range found.Leftovers {
		named := slices.Contains(f.runs, leftover.Run)
		switch {
		case len(f.runs) > 0 && !named:
			continue
		case leftover.Kept && !named:
			f.print("run %s on %s kept the objects of failed behaviors (--keep-failed), skipping; use --run %s to remove them:", leftover.Run, cluster.Name, leftover.Run)
			f.printEach("  Namespace %s", leftover.Namespaces)
			continue
		case leftover.Unsure != nil && !named:
			f.print("run %s on %s may be active (%v), skipping; use --run %s to remove it anyway", leftover.Run, cluster.Name, leftover.Unsure, leftover.Run)
			continue
		case !leftover.AliveUntil.IsZero() && !named:
			f.print("run %s on %s is still active (lease valid until %s), skipping; use --run %s to remove it anyway",
				leftover.Run, cluster.Name, leftover.AliveUntil.Local().Format(time.TimeOnly), leftover.Run)
			continue
		}
		if len(leftover.Objects) > 0 {
			f.print("run %s left on %s:", leftover.Run, cluster.Name)
			f.printEach("  %s", leftover.Objects)
		}
		if stopped := leftover.Controller; stopped.IsDeployment() && stopped != f.removal.Controller {
			f.print("It may have stopped %s: to scale it back, add --controller deploy/%s --controller-namespace %s", stopped, stopped.Name, stopped.Namespace)
		}
		selected = append(selected, leftover)
	}
	if len(found.Foreign) > 0 {
		f.print("not provably created by a run, and not removed, although they carry the label of one:")
		f.printEach("  %s", found.Foreign)
	}
	if len(found.Unread) > 0 {
		f.print("could not be listed, and may contain more leftovers:")
		f.printEach("  %s", found.Unread)
	}
	return selected
}

// confirm asks in a terminal, unless the user has already answered by a flag.
func (f *cleanupFlags) confirm() error {
	if f.yes || len(f.runs) > 0 {
		return nil
	}
	if terminal, ok := f.streams.In.(*os.File); !ok || !term.IsTerminal(int(terminal.Fd())) {
		return usage(errors.New("nothing was removed: check the list, then use --yes or --run ID"))
	}
	_, _ = fmt.Fprint(f.streams.ErrOut, "Remove all of this? [y/N] ")
	answer, _ := bufio.NewReader(f.streams.In).ReadString('\n')
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return usage(errors.New("nothing was removed"))
	}
	return nil
}

func (f *cleanupFlags) print(format string, values ...any) {
	_, _ = fmt.Fprintf(f.streams.Out, format+"\n", values...)
}

func (f *cleanupFlags) printEach(format string, values []string) {
	for _, value := range values {
		f.print(format, value)
	}
}
