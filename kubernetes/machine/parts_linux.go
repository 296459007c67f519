package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// parts are the processes of the machine that were asked for. Being the first process, this one inherits every other
// process whose parent ends, and has to take note of its end too.
type parts struct {
	mu      sync.Mutex
	out     *json.Encoder
	running map[int]string // names by process id
}

func newParts(out io.Writer) *parts {
	return &parts{out: json.NewEncoder(out), running: map[int]string{}}
}

// say tells the host. When nobody listens any more, the input ends too.
func (p *parts) say(what event) { _ = p.out.Encode(what) }

// start starts a part.
func (p *parts) start(part part) {
	p.mu.Lock() // the process may end before its id is known
	defer p.mu.Unlock()
	id, err := launch(part)
	if err != nil {
		p.say(event{Name: part.Name, Ended: true, How: err.Error()})
		return
	}
	p.running[id] = part.Name
	p.say(event{Name: part.Name})
}

func launch(part part) (int, error) {
	log, err := os.OpenFile(part.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = nothing.Close() }()
	process, err := os.StartProcess(part.Command[0], part.Command, &os.ProcAttr{
		Env: part.Environment, Dir: "/", Files: []*os.File{nothing, log, log},
	})
	if err != nil {
		return 0, err
	}
	id := process.Pid
	return id, process.Release()
}

// stop kills a part, as a power cut would: what it has started lives on.
func (p *parts) stop(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, running := range p.running {
		if running == name {
			_ = syscall.Kill(id, syscall.SIGKILL) // it is not reaped yet, so the id is its own
		}
	}
}

// reap takes note of the end of every process, and tells the host about those it asked for.
func (p *parts) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for p.reapOne() {
		}
	}
}

// reapOne takes note of the end of one process, if one has ended.
func (p *parts) reapOne() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var status syscall.WaitStatus
	id, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err != nil || id <= 0 {
		return false
	}
	if name, known := p.running[id]; known {
		delete(p.running, id)
		p.say(event{Name: name, Ended: true, How: how(status)})
	}
	return true
}

func how(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("signal: %s", status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
