package kubectl

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/detach"
)

// Command is a running kubectl.
type Command struct {
	// Arguments are its command-line arguments.
	Arguments []string

	commands   *Commands
	log        *requestLog
	token      string
	kubeconfig string
	running    *exec.Cmd
	stdout     bytes.Buffer
	stderr     bytes.Buffer
	ended      chan struct{}
}

// Result is the result of a command.
type Result struct {
	// ExitCode is its exit code; -1 when it was killed.
	ExitCode int
	// Stdout and Stderr are its output.
	Stdout, Stderr string
}

// drainTimeout limits the wait for output after the command has ended.
const drainTimeout = 5 * time.Second

func (c *Command) start(ctx context.Context, input io.Reader) error {
	c.running = exec.CommandContext(ctx, c.commands.Binary.Path, c.Arguments...)
	c.running.Dir = c.commands.folder.Path()
	c.running.Env = environment(c.commands.folder.Path(), c.kubeconfig)
	c.running.Stdin, c.running.Stdout, c.running.Stderr = input, &c.stdout, &c.stderr
	c.running.WaitDelay = drainTimeout
	ended, err := detach.Start(c.running)
	if err != nil {
		return err
	}
	go func() {
		<-ended //nolint:errcheck // the exit code is the result
		c.commands.end(c)
		close(c.ended)
	}()
	return nil
}

func (c *Command) kill() {
	_ = c.running.Process.Kill() // it may have ended already
	<-c.ended
}

// Requests returns the requests made so far, the oldest first.
func (c *Command) Requests() []Request { return c.log.requests() }

// Ended is closed when the command has ended.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Result waits until the command has ended and returns its result.
func (c *Command) Result() Result {
	<-c.ended
	return Result{ExitCode: c.running.ProcessState.ExitCode(), Stdout: c.stdout.String(), Stderr: c.stderr.String()}
}
