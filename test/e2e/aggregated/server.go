// Package aggregated runs k8s.io/sample-apiserver next to an embedded cluster, whose API server forwards requests for its API: flunders and
// fischers of wardle.example.com.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded"
)

const (
	loopback = "127.0.0.1"
	// etcdSocket and etcdPeerSocket are the sockets of the server's etcd, in its directory.
	etcdSocket, etcdPeerSocket = "etcd:0", "etcd:1"
)

// Resources are the resources of the server, in the notation of `runner --resource`.
var Resources = []string{"flunders.wardle.example.com", "fischers.wardle.example.com"}

// Server is a running sample-apiserver with its own etcd.
type Server struct {
	dir       string
	port      int32
	processes []*exec.Cmd
}

// Start starts the server and etcd from their binaries. It returns when the cluster serves the API. The processes end with the context, or
// with Stop.
func Start(ctx context.Context, cluster *embedded.Cluster, binary, etcd string) (*Server, error) {
	dir, err := os.MkdirTemp("", "sample-apiserver-") // short, because it contains sockets
	if err != nil {
		return nil, err
	}
	server := &Server{dir: dir}
	if err := server.start(ctx, cluster, binary, etcd); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), server.output(), server.Stop())
	}
	if err := server.register(ctx, cluster.RESTConfig()); err != nil {
		return nil, errors.Join(fmt.Errorf("register %s: %w", binary, err), server.output(), server.Stop())
	}
	return server, nil
}

// start starts both processes.
func (s *Server) start(ctx context.Context, cluster *embedded.Cluster, binary, etcd string) error {
	kubeconfig, err := cluster.AddUser("sample-apiserver", "system:masters")
	if err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.run(ctx, etcd,
		"--data-dir="+filepath.Join(s.dir, "data"),
		"--unsafe-no-fsync",
		"--listen-client-urls=unix://"+etcdSocket,
		"--listen-peer-urls=unix://"+etcdPeerSocket,
		"--advertise-client-urls=http://localhost:2379", // required, but nothing listens there
	); err != nil {
		return err
	}
	return s.run(ctx, binary,
		"--etcd-servers=unix://"+filepath.Join(s.dir, etcdSocket),
		"--bind-address="+loopback,
		"--secure-port="+strconv.Itoa(int(s.port)),
		"--cert-dir="+s.dir,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
	)
}

// run starts a process that logs to the server's directory.
func (s *Server) run(ctx context.Context, binary string, flags ...string) error {
	absolute, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	process := exec.CommandContext(ctx, absolute, flags...)
	process.Dir, process.Stdout, process.Stderr = s.dir, log, log
	if err := process.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, process)
	return nil
}

// output returns the end of the processes' output as an error.
func (s *Server) output() error {
	const enough = 4 << 10
	log, err := os.Open(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil // none was started
	}
	defer func() { _ = log.Close() }()
	_, _ = log.Seek(-enough, io.SeekEnd) // or all of it
	content, err := io.ReadAll(log)
	return errors.Join(errors.New(string(content)), err)
}

// Stop stops the server and removes its data. The cluster keeps the APIServices.
func (s *Server) Stop() error {
	for _, process := range s.processes {
		_ = process.Process.Kill()
		_ = process.Wait() // it was killed
	}
	return os.RemoveAll(s.dir)
}

// freePort returns a free loopback port.
func freePort() (int32, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	return int32(listener.Addr().(*net.TCPAddr).Port), listener.Close() //nolint:gosec // a port fits
}
