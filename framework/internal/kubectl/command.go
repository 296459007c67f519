package kubectl

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"time"
)

// Command is kubectl at work.
type Command struct {
	// Arguments are what it was called with.
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

// Result is how a command ended.
type Result struct {
	// ExitCode is its exit code, -1 when it was killed.
	ExitCode int
	// Stdout and Stderr are what it said.
	Stdout, Stderr string
}

// drainTimeout is how long what it said is waited for once it has ended.
const drainTimeout = 5 * time.Second

func (c *Command) start(ctx context.Context, input io.Reader) error {
	c.running = exec.CommandContext(ctx, c.commands.Binary.Path, c.Arguments...)
	c.running.Dir = c.commands.folder.Path()
	c.running.Env = environment(c.commands.folder.Path(), c.kubeconfig)
	c.running.Stdin, c.running.Stdout, c.running.Stderr = input, &c.stdout, &c.stderr
	c.running.WaitDelay = drainTimeout
	c.running.SysProcAttr = endWithParent()
	if err := c.running.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.running.Wait() // the exit code says it
		c.commands.end(c)
		close(c.ended)
	}()
	return nil
}

func (c *Command) kill() {
	_ = c.running.Process.Kill() // it may have ended already
	<-c.ended
}

// Requests are those that it has made so far, the oldest first.
func (c *Command) Requests() []Request { return c.log.requests() }

// Ended is closed once it has ended.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Result is how it ended. It waits for that.
func (c *Command) Result() Result {
	<-c.ended
	return Result{ExitCode: c.running.ProcessState.ExitCode(), Stdout: c.stdout.String(), Stderr: c.stderr.String()}
}
