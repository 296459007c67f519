package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"syscall"
)

// Namespaces are those that make a process the first one of a sandbox. It has a session of its own as every component of
// a cluster; see process.Start.
func Namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
}

// Main is the first process of a sandbox: it does what it is told on its input until there is nothing more to come.
func Main(input io.ReadCloser, output io.WriteCloser) error {
	if os.Getpid() != 1 {
		return errors.New("this is no sandbox: the runner starts this command itself, in new namespaces")
	}
	server := rpc.NewServer()
	if err := server.RegisterName(service, &initProcess{processes: newProcesses()}); err != nil {
		return fmt.Errorf("serve the sandbox: %w", err)
	}
	server.ServeConn(stream{input, output})
	return nil
}

// initProcess is what the host can call. Its methods have the form that net/rpc wants.
type initProcess struct{ processes *processes }

// Setup makes the file system and the network.
func (i *initProcess) Setup(spec Spec, _ *struct{}) error {
	if err := spec.mount(); err != nil {
		return fmt.Errorf("make the sandbox's file system: %w", err)
	}
	if err := spec.connect(); err != nil {
		return fmt.Errorf("make the sandbox's network: %w", err)
	}
	i.processes.reap()
	return nil
}

// Run starts a process.
func (i *initProcess) Run(command Command, _ *struct{}) error {
	if err := i.processes.start(command); err != nil {
		return fmt.Errorf("start %s: %w", command.Name, err)
	}
	return nil
}

// Stop kills a process and waits until it is gone.
func (i *initProcess) Stop(name string, _ *struct{}) error {
	i.processes.stop(name)
	return nil
}

// Runs says whether a process runs.
func (i *initProcess) Runs(name string, runs *bool) error {
	*runs = i.processes.runs(name)
	return nil
}

// Alive fails when a process has ended that was not stopped.
func (i *initProcess) Alive(struct{}, *struct{}) error { return i.processes.alive() }
