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
	"sync"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/detach"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
)

// Command is the argument with which a program starts itself again as a worker; see package reexec.
const Command = "deletion-conformance-worker"

const (
	// hangGrace is how long a worker may send nothing beyond a behavior's timeout before it counts as hung, including the time to clean up
	// after the behavior.
	hangGrace = 30 * time.Second
	// interruptGrace is how long an interrupted worker may take to end its behavior and clean up.
	interruptGrace = 30 * time.Second
	// drainTimeout limits reading a dead worker's standard error, which one of its children may keep open.
	drainTimeout = 2 * time.Second
	// collectLess makes Go collect a worker's garbage less often, because there is little. A setting of the user takes
	// precedence over this one and the next.
	collectLess = "GOGC=400"
	// oneProcessor saves the search of idle threads for work: workers mostly wait, and there are more of them than processors.
	oneProcessor = "GOMAXPROCS=1"
	// stderrLimit limits the standard error of a worker in the message about its death, in bytes.
	stderrLimit = 4 << 10
)

// process is one worker process.
type process struct {
	command *exec.Cmd
	reports *os.File
	// input is the worker's standard input, for one writer at a time.
	input   *json.Encoder
	writing sync.Mutex
	// lend gets the credentials that the worker borrows.
	lend   credentials.Lend
	stderr *tail
	// began is the running behavior; empty between behaviors.
	began string
}

// start starts the executable as a worker and sends its job. It lends the worker credentials.
func start(executable string, job Job, lend credentials.Lend) (*process, error) {
	reports, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	worker := &process{reports: reports, stderr: &tail{}, lend: lend}
	worker.command = reexec.Command(context.Background(), executable, Command, append([]string{collectLess, oneProcessor}, os.Environ()...))
	worker.command.Stderr = worker.stderr
	worker.command.ExtraFiles = []*os.File{writer}
	worker.command.WaitDelay = drainTimeout
	// In its own session: Ctrl-C in a terminal reaches only the runner, which passes it on.
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
	// The input stays open while the runner lives, which is how the worker notices. A worker that dies before it has read its job is
	// detected by its silence.
	worker.input = json.NewEncoder(input)
	go worker.write(job)
	return worker, nil
}

// write sends the worker its job, or an answer.
func (p *process) write(what any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.input.Encode(what)
}

// answer lends the worker a credential. It may take as long as a user takes to log in.
func (p *process) answer(asked borrows) {
	answer := loan{}
	err := crash.Caught("lend a credential", func() (err error) {
		answer.Credential, err = p.lend(asked.Rejected)
		return err
	})
	if err != nil {
		answer.Failed = err.Error()
	}
	p.write(answer)
}

// kill kills the worker and its children.
func (p *process) kill() { _ = detach.Kill(p.command.Process) } // it may have ended already

// follow handles the worker's messages until it ends, and returns why it ended unexpectedly.
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
			if m.Borrows != nil {
				go p.answer(*m.Borrows)
				continue
			}
			hung.Reset(limit + hangGrace)
			if m.Sent == "" {
				p.began = m.Began
			}
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

// read decodes messages from the pipe, and reports at its end whether one was incomplete.
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

// wait returns how the process ended: nil when it had sent everything, even if specs failed.
func (p *process) wait(problem error) error {
	err := errors.Join(p.command.Wait(), problem)
	if err == nil {
		return nil
	}
	output := strings.TrimSpace(p.stderr.String())
	if len(p.stderr.kept) == stderrLimit { // the first line may begin in the middle of a credential
		_, output, _ = strings.Cut(output, "\n")
	}
	if output != "" {
		output = "; last output: " + output
	}
	return fmt.Errorf("worker died: %w%s", err, output)
}

// tail keeps the end of its input.
type tail struct{ kept []byte }

func (t *tail) Write(content []byte) (int, error) {
	t.kept = append(t.kept, content...)
	if surplus := len(t.kept) - stderrLimit; surplus > 0 {
		t.kept = t.kept[surplus:]
	}
	return len(content), nil
}

func (t *tail) String() string { return string(t.kept) }
