// Package process runs the parts of a local cluster as processes that end with the runner, however it ends, and that
// leave their last words in a log.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// parentVariable names the environment variable by which the kubernetes binary knows the process it must not
	// outlive; kubernetes/parent.go reads it.
	parentVariable = "DELETION_CONFORMANCE_PARENT"
	// clusterVariable names the environment variable that holds the folder of the cluster a process belongs to, so that
	// what a killed runner left behind can be found. It is handed down to what the parts start themselves.
	clusterVariable = "DELETION_CONFORMANCE_CLUSTER"
	// lastLines is how many lines of a log an error carries.
	lastLines = 15
)

// Command is a part that can be started.
type Command struct {
	// Name is what the part is called: kube-scheduler.
	Name string
	// Binary is the path of what is run.
	Binary    string
	Arguments []string
	// Cluster is the folder of the cluster the part belongs to.
	Cluster string
	// Log is the file that gets what the part says; it is appended to.
	Log string
}

// Environment is the environment of a part that must end with the runner.
func Environment(cluster string) []string {
	return append(Marked(cluster), fmt.Sprintf("%s=%d", parentVariable, os.Getpid()))
}

// Marked is the environment of anything that belongs to a cluster: little, so that no setting of the runner's changes
// what a part does (a proxy between the API server and a webhook, for one), and what is needed to find it.
func Marked(cluster string) []string {
	environment := []string{
		fmt.Sprintf("%s=%s", clusterVariable, cluster),
		"HOME=" + cluster,
		"TMPDIR=" + cluster,
	}
	for _, name := range []string{"PATH", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK"} {
		if value, set := os.LookupEnv(name); set {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// Process is a part that was started.
type Process struct {
	Command
	running *exec.Cmd
	ended   chan struct{}
	state   error // how it ended; read it after ended is closed
}

// Start starts the part, in a session of its own: a terminal's Ctrl-C reaches the runner first, and what keeps the
// processors busy in the same terminal takes no more than its share (autogroups, see sched(7)). In one session with that,
// kernel threads that containers wait for were seen to get no time for minutes (Linux 6.18).
func (c Command) Start() (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(c.Binary, c.Arguments...)
	command.Env = Environment(c.Cluster)
	command.Dir = c.Cluster
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	process := &Process{Command: c, running: command, ended: make(chan struct{})}
	go func() {
		process.state = command.Wait()
		close(process.ended)
	}()
	return process, nil
}

// Alive is nil while the part runs; otherwise it says how it ended and what it said last.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		how := "exit status 0"
		if p.state != nil {
			how = p.state.Error()
		}
		return fmt.Errorf("%s ended (%s); the last lines of its log:\n%s", p.Name, how, LastWords(p.Log))
	default:
		return nil
	}
}

// Stop asks the part to end and kills it when it has not done so within the time.
func (p *Process) Stop(ctx context.Context, patience time.Duration) {
	_ = p.running.Process.Signal(syscall.SIGTERM) // it may have ended already
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
}

// Kill ends the part at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.running.Process.Kill() // it may have ended already
	<-p.ended
}

// PID is the process id.
func (p *Process) PID() int { return p.running.Process.Pid }

// LastWords are the last lines of a log.
func LastWords(log string) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-lastLines):], []byte("\n")))
}

// Script writes a shell script that becomes the binary in the environment and the folder of a part, having written its
// process id into a file beside itself, and returns its path. It is for parts that somebody else starts in his own way.
func Script(folder, binary, cluster string) (string, error) {
	name := filepath.Base(binary)
	quoted := make([]string, 0, 8)
	for _, variable := range Environment(cluster) {
		quoted = append(quoted, quote(variable))
	}
	script := fmt.Sprintf(`#!/bin/sh
# Written by deletion-conformance: runs %s so that it ends with its runner.
[ "$1" = --help ] || echo $$ >%s
cd %s && exec env -i %s %s "$@"
`, name, quote(pidFile(folder, name)), quote(cluster), strings.Join(quoted, " "), quote(binary))
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("write the script that starts %s: %w", name, err)
	}
	return path, nil
}

func pidFile(folder, name string) string { return filepath.Join(folder, name+".pid") }

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
