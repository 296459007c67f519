package controller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Server runs a controller in this process and lets other processes stop it for a while: it is stopped while one of them has a
// connection to the server's socket. A process that dies so starts it again.
type Server struct {
	run      func(context.Context) error
	onReturn func(error)
	dir      string
	listener *net.UnixListener
	pending  sync.WaitGroup
	end      func() error
}

// Listen makes a server without a controller.
func Listen() (*Server, error) {
	dir, err := os.MkdirTemp("", "controller-") // which only this user may enter; paths of sockets must be short
	if err != nil {
		return nil, fmt.Errorf("make a directory for the socket of the controller: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the socket of the controller: %w", err), os.RemoveAll(dir))
	}
	return &Server{dir: dir, listener: listener, end: func() error { return nil }}, nil
}

// Serve runs a controller until the server is closed. The function runs it until its context is cancelled, as Start of
// controller-runtime's managers does, and is called again each time the controller is to start. Should it return without having been
// told to, onReturn is called with why.
func (s *Server) Serve(run func(context.Context) error, onReturn func(error)) {
	s.run, s.onReturn = run, onReturn
	s.start()
	s.pending.Go(s.accept)
}

// Controller names the controller for the processes that are to stop it.
func (s *Server) Controller() Controller { return Controller{Socket: s.listener.Addr().String()} }

// Close stops the controller and the server. It returns the controller's error.
func (s *Server) Close() error {
	_ = s.listener.Close()
	s.pending.Wait()
	return errors.Join(s.end(), os.RemoveAll(s.dir))
}

// start runs the controller until end is called, which returns its error.
func (s *Server) start() {
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	go func() {
		err := s.run(ctx)
		if ctx.Err() == nil {
			s.onReturn(err)
		}
		returned <- err
	}()
	s.end = func() error {
		cancel()
		if err := <-returned; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// accept serves one connection after the other, until the listener is closed.
func (s *Server) accept() {
	for {
		connection, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.pause(connection)
	}
}

// pause stops the controller until the other side of a connection ends, and tells it when the controller is stopped.
func (s *Server) pause(connection *net.UnixConn) {
	defer func() { _ = connection.Close() }()
	said := stopped
	if err := s.end(); err != nil {
		said = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	_, _ = fmt.Fprintln(connection, said) // whoever has gone in the meantime need not know
	_, _ = io.Copy(io.Discard, connection)
	s.start()
}

// stopped is what a server says once the controller is stopped.
const stopped = "stopped"

// Pause stops a controller that runs in another process, and returns what starts it again. It fails where the controller ended with an
// error, and when the context ends before it has stopped.
func Pause(ctx context.Context, which Controller) (start func() error, err error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", which.Socket)
	if err != nil {
		return nil, fmt.Errorf("stop the controller: %w", err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer unwatch()
	said, err := bufio.NewReader(connection).ReadString('\n')
	if said = strings.TrimSpace(said); err == nil && said != stopped {
		err = errors.New(said)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stop the controller: %w", err), context.Cause(ctx), connection.Close())
	}
	return connection.Close, nil
}
