// Package process runs the components of a local cluster as processes that end with the runner, however it ends, and that
// write logs.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/detach"
)

const (
	// parentVariable names the environment variable by which the kubernetes binary knows the process it must not
	// outlive; kubernetes/parent.go reads it.
	parentVariable = "DELETION_CONFORMANCE_PARENT"
	// clusterVariable names the environment variable that holds the state directory of the cluster a process belongs
	// to, so that what a killed runner left behind can be found. It is handed down to what the components start
	// themselves.
	clusterVariable = "DELETION_CONFORMANCE_CLUSTER"
	// collectLess has Go collect garbage a fourth as often as it would, which takes a fifth of the processors' time off a run and
	// some 200 MiB of memory. A setting of the user's comes after it, and counts.
	collectLess = "GOGC=400"
	// tailLines is how many lines of a log an error carries.
	tailLines = 15
)

// Command is a component that can be started.
type Command struct {
	// Name is what the component is called: kube-scheduler.
	Name string
	// Binary is the path of what is run.
	Binary string
	Flags  []string
	// Cluster is the state directory of the cluster the component belongs to.
	Cluster string
	// Log is the file that gets what the component says; it is appended to.
	Log string
}

// BaseEnvironment is the environment of anything that belongs to a cluster: little, so that no setting of the runner's
// changes what a component does (a proxy between the API server and a webhook, for one), and what is needed to find it.
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

// Process is a component that was started.
type Process struct {
	Command
	running *exec.Cmd
	ended   chan struct{}
	status  error // how it ended; read it after ended is closed
}

// Start starts the component, in a session of its own: a terminal's Ctrl-C reaches the runner first, and what keeps the
// processors busy in the same terminal takes no more than its share (autogroups, see sched(7)). In one session with that,
// kernel threads that containers wait for were seen to get no time for minutes (Linux 6.18).
func (c Command) Start() (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(c.Binary, c.Flags...)
	command.Env = append(BaseEnvironment(c.Cluster), fmt.Sprintf("%s=%d", parentVariable, os.Getpid()))
	command.Dir = c.Cluster
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = detach.Attributes()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	process := &Process{Command: c, running: command, ended: make(chan struct{})}
	go func() {
		process.status = command.Wait()
		close(process.ended)
	}()
	return process, nil
}

// Alive is nil while the component runs; otherwise it says how it ended and what it said last.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended (%s); the last lines of its log:\n%s", p.Name, Status(p.status), LogTail(p.Log))
	default:
		return nil
	}
}

// Status says how a process ended, from what waiting for it returned.
func Status(waited error) string {
	if waited == nil {
		return "exit status 0"
	}
	return waited.Error()
}

// Stop asks the component to end and kills it when it has not done so within the timeout.
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

// Kill ends the component at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.running.Process.Kill() // it may have ended already
	<-p.ended
}

// LogTail are the last lines of a log.
func LogTail(log string) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
