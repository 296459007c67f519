// Package sandbox is what a node of a local cluster runs in: processes, mounts, network and host name that nobody else on
// the host sees, in kernel namespaces that end with their first process. That process is the runner once more (see package reexec); it takes calls on its standard input (net/rpc) and ends when the input does, so it cannot
// outlive whoever holds the other end.
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

	"github.com/deletion-conformance/deletion-conformance/internal/reexec"
	"github.com/deletion-conformance/deletion-conformance/provider/embedded/internal/process"
)

// Spec says what a sandbox is like.
type Spec struct {
	// Hostname is its host name.
	Hostname string
	// Root is an empty directory for its root file system.
	Root string
	// Disk is a directory for what is stored in it under /var.
	Disk string
	// Mounts are directories of the host that it sees under the same path, and may write to.
	Mounts []string
	// ReadOnlyMounts are those that it may only read.
	ReadOnlyMounts []string
	// Address is its IP address.
	Address string
	// Busybox is the path of a busybox, whose ip gives it its address.
	Busybox string
	// Sysctls are kernel settings (a path below /proc/sys) that it is shown with these values, and cannot change for the
	// host.
	Sysctls map[string]string
	// APIServer is the TCP address under which it reaches the API server, through the host's socket APIProxySocket.
	APIServer, APIProxySocket string
	// ProxySocket is a socket through which the host reaches its TCP addresses, by HTTP CONNECT.
	ProxySocket string
}

// Command is a process to run in a sandbox.
type Command struct {
	// Name is what the process is called from then on.
	Name        string
	Arguments   []string
	Environment []string
	// Log is the file that gets what it says; it is appended to.
	Log string
}

// Sandbox is a sandbox that runs. Its methods may be called by several goroutines at once.
type Sandbox struct {
	process *exec.Cmd
	client  *rpc.Client
	log     string
	status  error         // how it ended; read it after ended is closed
	ended   chan struct{} // closed when nothing of the sandbox is left
}

// Subcommand is the name by which a program starts itself again as the first process of a sandbox; see package reexec.
const Subcommand = "deletion-conformance-sandbox"

// Start starts a sandbox. The environment is that of its first process, and the log gets what that says.
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

// open starts the first process in namespaces of its own.
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

// Run starts a process in the sandbox. Nothing happens if one of that name runs already.
func (s *Sandbox) Run(ctx context.Context, command Command) error {
	return s.call(ctx, "Run", command, nil)
}

// Stop kills a process, as a power cut would: what it has started lives on. It returns when the process is gone, and
// does nothing if it does not run.
func (s *Sandbox) Stop(ctx context.Context, name string) error {
	return s.call(ctx, "Stop", name, nil)
}

// Runs says whether a process runs.
func (s *Sandbox) Runs(ctx context.Context, name string) (runs bool, err error) {
	err = s.call(ctx, "Runs", name, &runs)
	return runs, err
}

// Alive is nil while the sandbox and everything that was run in it, and not stopped, runs.
func (s *Sandbox) Alive(ctx context.Context) error {
	return s.call(ctx, "Alive", struct{}{}, nil)
}

// Kill ends the sandbox with everything in it, and waits until nothing is left: the kernel ends every process of the
// namespaces with their first one.
func (s *Sandbox) Kill() {
	_ = s.process.Process.Kill() // it may have ended already
	<-s.ended
}

// call asks the first process. When that has ended, the error says how, and what it said last.
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
	<-s.ended // the first process ends when it cannot be talked to
	return fmt.Errorf("the sandbox ended (%s); the last lines of its log:\n%s", process.Status(s.status), process.LogTail(s.log))
}

// service is the name under which the first process serves its methods.
const service = "Sandbox"

// stream is one end of the connection between the host and the first process.
type stream struct {
	io.ReadCloser
	writer io.WriteCloser
}

func (s stream) Write(content []byte) (int, error) { return s.writer.Write(content) }

// Close closes both directions.
func (s stream) Close() error { return errors.Join(s.ReadCloser.Close(), s.writer.Close()) }
