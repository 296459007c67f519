// Package cli is the runner's command line: flags in, exit code out. One file a subcommand.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/deletion-conformance/deletion-conformance/framework/crash"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/reexec"
	"github.com/deletion-conformance/deletion-conformance/internal/workers"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

// Main runs the command and returns the exit code. An error is one line on standard error.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	klog.SetLogger(klog.New(nil)) // libraries' logs: what matters of them comes back as errors
	reexec.Init(map[string]func() error{
		workers.Command:         workers.Main,
		embedded.SandboxCommand: func() error { return embedded.Sandbox(os.Stdin, os.Stdout) },
	})
	ctx, stop := interruptible(errOut)
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

// debounce is how soon after the first signal another one counts as the same: `timeout`, make and terminals signal a
// command and then the whole group that it is in.
const debounce = 500 * time.Millisecond

// interruptible is a context that the first Ctrl-C (or SIGTERM) cancels; a later one ends the program at once.
func interruptible(errOut io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
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
				_, _ = fmt.Fprintln(errOut, "runner: stopped without cleaning up: run `runner cleanup` for leftovers on a cluster, and `kind delete cluster --name NAME` for a kind cluster that was created")
				os.Exit(ExitInterrupted)
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel() }
}

// NewCommand is the root command: without a subcommand it runs the suites.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := newRunCommand(streams)
	command.AddCommand(
		newListCommand(streams),
		newPreflightCommand(streams),
		newCleanupCommand(streams),
		newClusterCommand(streams),
		newFixtureCommand(streams),
		newMergeCommand(streams),
		newCompareCommand(streams),
		newReportCommand(streams),
		newVersionCommand(streams),
	)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w (see `%s --help`)", err, command.CommandPath()))
	})
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SuggestionsMinimumDistance = 2
	return command
}

// noArguments refuses arguments, and says what might have been meant.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command or argument %q", args[0])
	if suggestions := command.SuggestionsFor(args[0]); len(suggestions) > 0 {
		message += fmt.Sprintf(": did you mean %q?", suggestions[0])
	}
	return usage(fmt.Errorf("%s (see `%s --help`)", message, command.CommandPath()))
}
