package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

// processes are the processes that were started. The first process inherits orphans and must reap them too.
type processes struct {
	mu sync.Mutex
	// byName are those that were not stopped, byID those that were not reaped.
	byName map[string]*child
	byID   map[int]*child
}

// child is a started process.
type child struct {
	id     int
	log    string
	ended  chan struct{} // closed when it has ended
	status string        // how it ended; empty while it runs
}

// runs reports whether the process was started and has not ended.
func (c *child) runs() bool { return c != nil && c.status == "" }

func newProcesses() *processes {
	return &processes{byName: map[string]*child{}, byID: map[int]*child{}}
}

// start starts a process unless it runs.
func (p *processes) start(command Command) error {
	p.mu.Lock() // the process may end before its id is known
	defer p.mu.Unlock()
	if p.byName[command.Name].runs() {
		return nil
	}
	id, err := launch(command)
	if err != nil {
		return err
	}
	started := &child{id: id, log: command.Log, ended: make(chan struct{})}
	p.byName[command.Name], p.byID[id] = started, started
	return nil
}

func launch(command Command) (int, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = nothing.Close() }()
	started, err := os.StartProcess(command.Arguments[0], command.Arguments, &os.ProcAttr{
		Env: command.Environment, Dir: "/", Files: []*os.File{nothing, log, log},
	})
	if err != nil {
		return 0, err
	}
	id := started.Pid
	return id, started.Release()
}

// stop kills a process, waits until it is gone and forgets it, because its end was requested.
func (p *processes) stop(name string) {
	p.mu.Lock()
	stopped := p.byName[name]
	delete(p.byName, name)
	if stopped.runs() {
		_ = syscall.Kill(stopped.id, syscall.SIGKILL) // it was not reaped, so the id is still valid
	}
	p.mu.Unlock()
	if stopped != nil {
		<-stopped.ended
	}
}

func (p *processes) runs(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name].runs()
}

// alive returns nil while every process runs. Otherwise the error contains which one ended, how, and the end of its log.
func (p *processes) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failures []error
	for name, found := range p.byName {
		if !found.runs() {
			failures = append(failures,
				fmt.Errorf("%s ended (%s); the last lines of its log:\n%s", name, found.status, process.LogTail(found.log)))
		}
	}
	return errors.Join(failures...)
}

// reap starts to reap every process that ends.
func (p *processes) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			for p.reapOne() {
			}
		}
	}()
}

// reapOne reaps one process, if one has ended.
func (p *processes) reapOne() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var status syscall.WaitStatus
	id, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err != nil || id <= 0 {
		return false
	}
	if found := p.byID[id]; found != nil {
		delete(p.byID, id)
		found.status = text(status)
		close(found.ended)
	}
	return true
}

func text(status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("signal: %s", status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
