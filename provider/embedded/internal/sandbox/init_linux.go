package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"syscall"
)

// Namespaces returns the namespaces of a sandbox for its first process. It has its own session like every component of a cluster; see
// process.Start.
func Namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
}

// Main is the first process of a sandbox: it serves calls on its input until the input ends.
func Main(input io.ReadCloser, output io.WriteCloser) error {
	if os.Getpid() != 1 {
		return errors.New("this process is not a sandbox: only the runner starts this command, in new namespaces")
	}
	server := rpc.NewServer()
	if err := server.RegisterName(service, &initProcess{processes: newProcesses()}); err != nil {
		return fmt.Errorf("serve the sandbox: %w", err)
	}
	server.ServeConn(stream{input, output})
	return nil
}

// initProcess is the service for the host. Its methods have the form that net/rpc requires.
type initProcess struct{ processes *processes }

// Setup creates the file system and the network.
func (i *initProcess) Setup(spec Spec, _ *struct{}) error {
	if err := spec.mount(); err != nil {
		return fmt.Errorf("create the sandbox's file system: %w", err)
	}
	if err := spec.connect(); err != nil {
		return fmt.Errorf("create the sandbox's network: %w", err)
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

// Runs reports whether a process runs.
func (i *initProcess) Runs(name string, runs *bool) error {
	*runs = i.processes.runs(name)
	return nil
}

// Alive fails when a process has ended that was not stopped.
func (i *initProcess) Alive(struct{}, *struct{}) error { return i.processes.alive() }
