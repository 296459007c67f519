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
)

// Component is a component of a cluster that can be stopped and started.
type Component string

// Kubelet is the kubelet of a cluster's one node.
const Kubelet Component = "kubelet"

// Switch stops and starts a component. Both return when it is done.
type Switch struct {
	Stop, Start func(ctx context.Context) error
}

// Serve makes a socket, in a folder that only its user can reach, and serves the switches on it until it is closed.
func Serve(socket string, switches map[Component]Switch) (io.Closer, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve the component socket: %w", err)
	}
	mux := http.NewServeMux()
	for component, its := range switches {
		mux.HandleFunc("POST /"+string(component)+"/stop", serve(its.Stop))
		mux.HandleFunc("POST /"+string(component)+"/start", serve(its.Start))
	}
	server := &http.Server{Handler: mux} //nolint:gosec // a socket of our own has no slow clients
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func serve(do func(context.Context) error) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if err := do(request.Context()); err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
		}
	}
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
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s the %s: %w", what, component, err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s the %s: %w", what, component, err)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s the %s: %w", what, component, ErrNoSwitch)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s the %s: %s", what, component, strings.TrimSpace(string(said)))
	}
	return nil
}
