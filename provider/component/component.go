// Package component lets specs, which run in worker processes, stop and start components of a cluster that the runner
// made: the runner serves a socket, and only its user can reach it.
package component

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Component is a component of a cluster that can be stopped and started.
type Component string

// The components, by the names of their binaries.
const (
	// Kubelet is the kubelet of a cluster's one node. Stopped, it is gone as with a power cut.
	Kubelet Component = "kubelet"
	// ControllerManager is the controller manager. Stopped, it has ended in its own time, as in an upgrade.
	ControllerManager Component = "kube-controller-manager"
)

// Switch stops and starts a component. Both return when it is done, and do nothing when there is nothing to do.
type Switch struct {
	Stop, Start func(ctx context.Context) error
}

// server serves the switches, one at a time.
type server struct {
	http.Server
	busy sync.Mutex
}

// Serve makes a socket, in a directory that only its user can reach, and serves the switches on it until it is closed.
// Closing it interrupts what is being done, and waits for that to end.
func Serve(socket string, switches map[Component]Switch) (io.Closer, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve the component socket: %w", err)
	}
	mux := http.NewServeMux()
	server := &server{Server: http.Server{Handler: mux}} //nolint:gosec // a socket of our own has no slow clients
	for component, its := range switches {
		mux.HandleFunc("POST /"+string(component)+"/stop", server.handle(its.Stop))
		mux.HandleFunc("POST /"+string(component)+"/start", server.handle(its.Start))
	}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func (s *server) handle(do func(context.Context) error) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.busy.Lock()
		defer s.busy.Unlock()
		if err := do(request.Context()); err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
		}
	}
}

// Close ends the server.
func (s *server) Close() error {
	err := s.Server.Close()
	s.busy.Lock() // until what is being done has ended
	defer s.busy.Unlock()
	return err
}

// Stop stops a component, through the socket.
func Stop(ctx context.Context, socket string, component Component) error {
	return ask(ctx, socket, component, "stop")
}

// Start starts a component, through the socket.
func Start(ctx context.Context, socket string, component Component) error {
	return ask(ctx, socket, component, "start")
}

// ErrNoSwitch says that nobody can stop or start this component of the cluster.
var ErrNoSwitch = errors.New("only possible on a local cluster with this component")

func ask(ctx context.Context, socket string, component Component, what string) error {
	if socket == "" {
		return fmt.Errorf("%s the %s: %w", what, component, ErrNoSwitch)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runner/"+string(component)+"/"+what, nil)
	if err != nil {
		return fmt.Errorf("%s the %s: %w", what, component, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s the %s: %w", what, component, err)
	}
	defer func() { _ = response.Body.Close() }()
	message, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s the %s: %w", what, component, err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s the %s: %w", what, component, ErrNoSwitch)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s the %s: %s", what, component, strings.TrimSpace(string(message)))
	}
	return nil
}
