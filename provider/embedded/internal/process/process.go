// Package process runs the components of an embedded cluster as processes that end with the runner and write logs.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/detach"
)

const (
	// parentVariable is the environment variable with the process that the kubernetes binary must not outlive; kubernetes/parent.go reads
	// it.
	parentVariable = "DELETION_CONFORMANCE_PARENT"
	// clusterVariable is the environment variable with the state directory of a process's cluster, by which processes of a killed runner
	// can be found. Children of the components inherit it.
	clusterVariable = "DELETION_CONFORMANCE_CLUSTER"
	// collectLess makes Go collect garbage a quarter as often, which reduces the processor time of a run by a fifth and needs about 200 MiB
	// more memory. A setting of the user takes precedence.
	collectLess = "GOGC=400"
	// tailLines is how many lines of a log an error contains.
	tailLines = 15
)

// Command is a component to start.
type Command struct {
	// Name is the name of the component: kube-scheduler.
	Name string
	// Binary is the path of the executable.
	Binary string
	Flags  []string
	// Cluster is the state directory of the component's cluster.
	Cluster string
	// Environment has variables that settings of the user override.
	Environment []string
	// Log is the file for the component's output, which is appended.
	Log string
}

// BaseEnvironment is the minimal environment of everything in a cluster: settings of the runner must not affect components (such as a proxy
// between the API server and a webhook), and processes must be found by it.
func BaseEnvironment(cluster string) []string {
	environment := []string{
		fmt.Sprintf("%s=%s", clusterVariable, cluster),
		"HOME=" + cluster,
		"TMPDIR=" + cluster,
		collectLess,
	}
	for _, name := range []string{"PATH", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK"} {
		if value, set := os.LookupEnv(name); set {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// Process is a started component.
type Process struct {
	Command
	running *exec.Cmd
	ended   chan struct{}
	status  error // how it ended; read it after ended is closed
}

// Start starts the component in its own session, so that Ctrl-C in a terminal reaches only the runner, and processes of the same terminal
// take only their share of the processors (autogroups, see sched(7)). In a shared session, kernel threads that containers wait for were
// starved for minutes (Linux 6.18).
func (c Command) Start() (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(c.Binary, c.Flags...)
	command.Env = slices.Concat(c.Environment, BaseEnvironment(c.Cluster), []string{fmt.Sprintf("%s=%d", parentVariable, os.Getpid())})
	command.Dir = c.Cluster
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = detach.Attributes()
	ended, err := detach.Start(command)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	process := &Process{Command: c, running: command, ended: make(chan struct{})}
	go func() {
		process.status = <-ended
		close(process.ended)
	}()
	return process, nil
}

// Alive returns nil while the component runs. Otherwise the error contains how it ended and the end of its log.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended (%s); the last lines of its log:\n%s", p.Name, Status(p.status), LogTail(p.Log))
	default:
		return nil
	}
}

// Status describes how a process ended, from the error of waiting for it.
func Status(waited error) string {
	if waited == nil {
		return "exit status 0"
	}
	return waited.Error()
}

// Stop terminates the component, and kills it after the timeout.
func (p *Process) Stop(ctx context.Context, timeout time.Duration) {
	_ = p.running.Process.Signal(syscall.SIGTERM) // it may have ended already
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
}

// Kill kills the component and waits until it is gone.
func (p *Process) Kill() {
	_ = p.running.Process.Kill() // it may have ended already
	<-p.ended
}

// LogTail returns the last lines of a log.
func LogTail(log string) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
