// Package cli is the runner's command line: flags in, exit code out. Each subcommand has a file.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/workers"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// Main runs the command and returns the exit code. An error is one line on standard error. Everything that is printed goes through two logs.
func Main(args []string, in io.Reader, stdout, stderr io.Writer) int {
	klog.SetLogger(klog.New(nil)) // logs of libraries: relevant problems are returned as errors
	reexec.Init(map[string]func() error{
		workers.Command:         workers.Main,
		embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) },
	})
	out, errOut := visible.NewLog(stdout), visible.NewLog(stderr)
	errOut.StopCommands()
	closeLogs := func() { _ = errors.Join(out.Close(), errOut.Close()) }
	defer closeLogs()
	ctx, stop := interruptible(errOut, closeLogs)
	defer stop()
	command := NewCommand(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut})
	command.SetArgs(args)
	err := crash.Caught("run the command", func() error { return command.ExecuteContext(ctx) })
	ended := (*exit)(nil)
	printed := err == nil || errors.As(err, &ended) && ended.err == nil || ended == nil && errors.Is(err, context.Canceled)
	if !printed {
		text := (&redact.Redactor{}).Text(err.Error())
		_, _ = fmt.Fprintf(errOut, "runner: %s\n", strings.TrimSpace(text))
	}
	return codeOf(err)
}

// debounce is the time after the first signal in which another one counts as the same: `timeout`, make and terminals signal a command and
// then its process group.
const debounce = 500 * time.Millisecond

// leftovers is the key of a context for what cleans up after a program that a second signal stops.
type leftovers struct{}

// noteCleanup notes how to clean up if the program is stopped from now on. It replaces what was noted before.
func noteCleanup(ctx context.Context, cleanup string) {
	if noted, ok := ctx.Value(leftovers{}).(*atomic.Value); ok {
		noted.Store(cleanup)
	}
}

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels; a later one exits at once, after a last call.
func interruptible(errOut io.Writer, last func()) (context.Context, context.CancelFunc) {
	noted := &atomic.Value{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), leftovers{}, noted))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		var first time.Time
		for range signals {
			switch {
			case first.IsZero():
				first = time.Now()
				_, _ = fmt.Fprintln(errOut, "runner: interrupted: cleaning up; press Ctrl-C again to stop immediately")
				cancel()
			case time.Since(first) > debounce:
				_, _ = fmt.Fprintln(errOut, "runner: "+stopped(noted))
				last()
				os.Exit(ExitInterrupted)
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel() }
}

// stopped returns the message of a stopped program, with the commands that clean up.
func stopped(noted *atomic.Value) string {
	if cleanup, ok := noted.Load().(string); ok && cleanup != "" {
		return "stopped without cleaning up; clean up with:\n  " + strings.ReplaceAll(cleanup, "\n", "\n  ")
	}
	return "stopped"
}

// NewCommand returns the root command: without a subcommand it runs the suites.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := newRunCommand(streams)
	command.AddCommand(
		newListCommand(streams),
		newPreflightCommand(streams),
		newExploreCommand(streams),
		newCleanupCommand(streams),
		newClusterCommand(streams),
		newFixtureCommand(streams),
		newCollectCommand(streams),
		newMergeCommand(streams),
		newCompareCommand(streams),
		newReportCommand(streams),
		newClaimCommand(streams),
		newVerifyCommand(streams),
		newSiteCommand(streams),
		newVersionCommand(streams),
	)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(flagError)
	command.PersistentPreRun = func(chosen *cobra.Command, _ []string) { stopCommands(chosen, streams.Out) }
	command.SilenceUsage, command.SilenceErrors = true, true
	each(command, refuseEmpty)
	formatHelp(command)
	return command
}

// printsText are the commands whose output is for people unless --output is given.
var printsText = []string{"runner", "preflight", "explore", "cleanup", "collect", "merge", "compare", "report", "claim", "verify", "site"}

// stopCommands makes GitHub Actions ignore commands in the output of a command. That adds lines, which programs that read the output of
// other commands do not expect.
func stopCommands(command *cobra.Command, out io.Writer) {
	format := command.Flags().Lookup("output")
	if log, ok := out.(*visible.Log); ok && slices.Contains(printsText, command.Name()) && (format == nil || !format.Changed) {
		log.StopCommands()
	}
}
