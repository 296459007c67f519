package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/detach"
	"github.com/deletion-conformance/deletion-conformance/internal/reexec"
)

// Command is the name by which a program starts itself again as a worker; see package reexec.
const Command = "deletion-conformance-worker"

const (
	// hangGrace is how long a worker may be silent beyond a behavior's time limit before it is taken for hung: it
	// cleans up after the behavior in this time.
	hangGrace = 30 * time.Second
	// interruptGrace is how long an interrupted worker may take to end its behavior and clean up.
	interruptGrace = 30 * time.Second
	// drainTimeout is how long a dead worker's standard error is read that a program it started still has open.
	drainTimeout = 2 * time.Second
	// collectLess has Go collect a worker's garbage, of which there is little, less often. A setting of the user's counts instead.
	collectLess = "GOGC=400"
	// stderrLimit is how much of a worker's standard error is kept for the message about its death, in bytes.
	stderrLimit = 4 << 10
)

// process is one worker process.
type process struct {
	command *exec.Cmd
	reports *os.File
	stderr  *tail
	// began is the behavior that runs now, empty between behaviors.
	began string
}

// start starts the executable as a worker and hands it its job.
func start(executable string, job Job) (*process, error) {
	reports, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	worker := &process{reports: reports, stderr: &tail{}}
	worker.command = reexec.Command(context.Background(), executable, Command, append([]string{collectLess}, os.Environ()...))
	worker.command.Stderr = worker.stderr
	worker.command.ExtraFiles = []*os.File{writer}
	worker.command.WaitDelay = drainTimeout
	// A session of its own: Ctrl-C in a terminal goes to the runner alone, which passes it on.
	worker.command.SysProcAttr = detach.Attributes()
	input, err := worker.command.StdinPipe()
	if err == nil {
		err = worker.command.Start()
	}
	_ = writer.Close()
	if err != nil {
		_ = reports.Close()
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	// The input stays open as long as the runner lives, which is how a worker knows. One that dies before it has read
	// its job is noticed by its silence.
	go func() { _ = json.NewEncoder(input).Encode(job) }()
	return worker, nil
}

// kill ends the worker and what it has started.
func (p *process) kill() { _ = detach.Kill(p.command.Process) } // it may have ended already

// follow hands on what the worker reports until it ends, and says why it ended if not by itself.
func (p *process) follow(ctx context.Context, limit time.Duration, onMessage func(message)) error {
	messages, problem := p.read()
	hung := time.NewTimer(limit + hangGrace)
	defer hung.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case m, open := <-messages:
			if !open {
				return p.wait(<-problem)
			}
			hung.Reset(limit + hangGrace)
			p.began = m.Began
			onMessage(m)
		case <-interrupted:
			interrupted = nil
			if errors.Is(context.Cause(ctx), ErrClusterLost) {
				p.kill() // it could not clean up either
				continue
			}
			_ = p.command.Process.Signal(syscall.SIGINT)
			hung.Reset(interruptGrace)
		case <-hung.C:
			p.kill()
			for range messages { // until the pipe is closed
			}
			return errors.Join(fmt.Errorf("worker sent no message for %s and was killed", limit+hangGrace), p.wait(nil))
		}
	}
}

// read turns the pipe into messages, and at its end says whether it was cut in the middle of one.
func (p *process) read() (<-chan message, <-chan error) {
	messages, problem := make(chan message), make(chan error, 1)
	go func() {
		defer close(messages)
		defer func() { _ = p.reports.Close() }()
		decoder := json.NewDecoder(p.reports)
		for {
			m := message{}
			if err := decoder.Decode(&m); err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				problem <- err
				return
			}
			messages <- m
		}
	}()
	return messages, problem
}

// wait says how the process ended: nil when it had reported all. A worker whose specs failed ends well too.
func (p *process) wait(problem error) error {
	err := errors.Join(p.command.Wait(), problem)
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(p.stderr.String())
	if said != "" {
		said = "; last output: " + said
	}
	return fmt.Errorf("worker died: %w%s", err, said)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(content []byte) (int, error) {
	t.kept = append(t.kept, content...)
	if surplus := len(t.kept) - stderrLimit; surplus > 0 {
		t.kept = t.kept[surplus:]
	}
	return len(content), nil
}

func (t *tail) String() string { return string(t.kept) }
