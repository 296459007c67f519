// Package sandbox runs the processes of a node in their own kernel namespaces (processes, mounts, network and host name), which end with
// their first process. That process is the runner again (see package reexec). It serves calls on its standard input (net/rpc) and ends with
// the input, so it cannot outlive the process at the other end.
//
// Sandbox is the host's end, Main the first process.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

// Spec configures a sandbox.
type Spec struct {
	// Hostname is its host name.
	Hostname string
	// Root is an empty directory for its root file system.
	Root string
	// Disk is a directory for the files in its /var.
	Disk string
	// Mounts are directories of the host that are mounted at the same path, writable.
	Mounts []string
	// ReadOnlyMounts are those that are mounted read-only.
	ReadOnlyMounts []string
	// Address is its IP address.
	Address string
	// Busybox is the path of a busybox, whose ip command sets the address.
	Busybox string
	// Sysctls are kernel settings (paths below /proc/sys) that it sees with these values and cannot change on the host.
	Sysctls map[string]string
	// APIServer is the TCP address of the API server inside, which leads to the host's socket APIProxySocket. APIService is another one,
	// which containers can reach: that of the API server's Service.
	APIServer, APIService, APIProxySocket string
	// ProxySocket is a socket through which the host reaches its TCP addresses, by HTTP CONNECT.
	ProxySocket string
}

// End is one end of a connection between two sandboxes.
type End struct {
	Sandbox *Sandbox
	// Address is the IP address of the sandbox, and Pods the range of the addresses behind it.
	Address, Pods string
}

// Command is a process to run in a sandbox.
type Command struct {
	// Name identifies the process in later calls.
	Name        string
	Arguments   []string
	Environment []string
	// Log is the file for its output, which is appended.
	Log string
}

// Sandbox is a running sandbox. Its methods are safe for concurrent use.
type Sandbox struct {
	process *exec.Cmd
	client  *rpc.Client
	log     string
	status  error         // how it ended; read it after ended is closed
	ended   chan struct{} // closed when nothing of the sandbox is left
}

// Subcommand is the argument with which a program starts itself as the first process of a sandbox; see package reexec.
const Subcommand = "deletion-conformance-sandbox"

// Start starts a sandbox. The environment and the log are those of its first process.
func Start(ctx context.Context, environment []string, log string, spec Spec) (*Sandbox, error) {
	s := &Sandbox{log: log, ended: make(chan struct{})}
	if err := s.open(environment); err != nil {
		return nil, fmt.Errorf("start the node's sandbox: %w", err)
	}
	if err := s.call(ctx, "Setup", spec, nil); err != nil {
		s.Kill()
		return nil, fmt.Errorf("start the node's sandbox: %w", err)
	}
	return s, nil
}

// open starts the first process in new namespaces.
func (s *Sandbox) open(environment []string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.process = reexec.Command(context.Background(), executable, Subcommand, environment)
	s.process.Stderr, s.process.SysProcAttr = log, Namespaces()
	input, err := s.process.StdinPipe()
	if err != nil {
		return err
	}
	output, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	s.client = rpc.NewClient(stream{output, input})
	go func() {
		s.status = s.process.Wait()
		close(s.ended)
	}()
	return nil
}

// Run starts a process in the sandbox, unless one with that name runs.
func (s *Sandbox) Run(ctx context.Context, command Command) error {
	return s.call(ctx, "Run", command, nil)
}

// Stop kills a process, as a power failure would: its children keep running. It returns when the process is gone, and has no effect if it
// does not run.
func (s *Sandbox) Stop(ctx context.Context, name string) error {
	return s.call(ctx, "Stop", name, nil)
}

// Runs reports whether a process runs.
func (s *Sandbox) Runs(ctx context.Context, name string) (runs bool, err error) {
	err = s.call(ctx, "Runs", name, &runs)
	return runs, err
}

// Alive returns nil while the sandbox and everything in it run, except stopped processes.
func (s *Sandbox) Alive(ctx context.Context) error {
	return s.call(ctx, "Alive", struct{}{}, nil)
}

// Kill kills the first process, and waits until the kernel has ended every process of the namespaces.
func (s *Sandbox) Kill() {
	_ = s.process.Process.Kill() // it may have ended already
	<-s.ended
}

// call calls the first process. If that has ended, the error contains how, and the end of its log.
func (s *Sandbox) call(ctx context.Context, method string, argument, reply any) error {
	call := s.client.Go(service+"."+method, argument, reply, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-call.Done:
	}
	if refused := rpc.ServerError(""); call.Error == nil || errors.As(call.Error, &refused) {
		return call.Error
	}
	<-s.ended // the first process ends with the connection
	return fmt.Errorf("the sandbox ended (%s); the last lines of its log:\n%s", process.Status(s.status), process.LogTail(s.log))
}

// service is the net/rpc name of the first process.
const service = "Sandbox"

// stream is one end of the connection between the host and the first process.
type stream struct {
	io.ReadCloser
	writer io.WriteCloser
}

func (s stream) Write(content []byte) (int, error) { return s.writer.Write(content) }

// Close closes both directions.
func (s stream) Close() error { return errors.Join(s.ReadCloser.Close(), s.writer.Close()) }
