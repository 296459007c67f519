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

// Server runs a controller in this process and allows other processes to pause it. The controller is stopped while one of them is connected
// to the server's socket, so it starts again when that process dies.
type Server struct {
	run      func(context.Context) error
	onReturn func(error)
	dir      string
	listener *net.UnixListener
	pending  sync.WaitGroup
	end      func() error
}

// Listen returns a server without a controller.
func Listen() (*Server, error) {
	dir, err := os.MkdirTemp("", "controller-") // only this user may enter it; paths of sockets must be short
	if err != nil {
		return nil, fmt.Errorf("make a directory for the socket of the controller: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the socket of the controller: %w", err), os.RemoveAll(dir))
	}
	return &Server{dir: dir, listener: listener, end: func() error { return nil }}, nil
}

// Serve runs a controller until the server is closed. The function run must run it until its context is canceled, as Start of
// controller-runtime's managers does. It is called again for each start. If it returns before its context is canceled, onReturn is called
// with its error.
func (s *Server) Serve(run func(context.Context) error, onReturn func(error)) {
	s.run, s.onReturn = run, onReturn
	s.start()
	s.pending.Go(s.accept)
}

// Controller returns the reference with which other processes pause the controller.
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

// accept serves one connection at a time, until the listener is closed.
func (s *Server) accept() {
	for {
		connection, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.pause(connection)
	}
}

// pause stops the controller until the peer closes the connection. It notifies the peer when the controller has stopped.
func (s *Server) pause(connection *net.UnixConn) {
	defer func() { _ = connection.Close() }()
	message := stopped
	if err := s.end(); err != nil {
		message = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	_, _ = fmt.Fprintln(connection, message) // the peer may be gone
	_, _ = io.Copy(io.Discard, connection)
	s.start()
}

// stopped is the server's message after the controller has stopped.
const stopped = "stopped"

// Pause stops a controller that runs in another process, and returns a function that starts it again. It fails when the controller returned
// an error, and when the context ends before the controller has stopped.
func Pause(ctx context.Context, which Controller) (start func() error, err error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", which.Socket)
	if err != nil {
		return nil, fmt.Errorf("stop the controller: %w", err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer unwatch()
	message, err := bufio.NewReader(connection).ReadString('\n')
	if message = strings.TrimSpace(message); err == nil && message != stopped {
		err = errors.New(message)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stop the controller: %w", err), context.Cause(ctx), connection.Close())
	}
	return connection.Close, nil
}
