// Package control lets specs, which run in worker processes, stop and start parts of a cluster that the runner made: the
// runner serves a socket, and only its user can reach it.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Part is a part of a cluster that can be stopped and started.
type Part string

// Kubelet is the kubelet of a cluster's one node.
const Kubelet Part = "kubelet"

// Switch stops and starts a part. Both return when it is done.
type Switch struct {
	Stop, Start func(ctx context.Context) error
}

// Serve makes a socket, in a folder that only its user can reach, and serves the switches on it until it is closed.
func Serve(socket string, switches map[Part]Switch) (io.Closer, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve the control socket: %w", err)
	}
	mux := http.NewServeMux()
	for part, control := range switches {
		mux.HandleFunc("POST /"+string(part)+"/stop", serve(control.Stop))
		mux.HandleFunc("POST /"+string(part)+"/start", serve(control.Start))
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

// Stop stops a part, through the socket.
func Stop(ctx context.Context, socket string, part Part) error { return ask(ctx, socket, part, "stop") }

// Start starts a part, through the socket.
func Start(ctx context.Context, socket string, part Part) error {
	return ask(ctx, socket, part, "start")
}

// ErrNoSwitch says that nobody can stop or start this part of the cluster.
var ErrNoSwitch = errors.New("only possible on a local cluster with this part")

func ask(ctx context.Context, socket string, part Part, what string) error {
	if socket == "" {
		return fmt.Errorf("%s the %s: %w", what, part, ErrNoSwitch)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runner/"+string(part)+"/"+what, nil)
	if err != nil {
		return fmt.Errorf("%s the %s: %w", what, part, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s the %s: %w", what, part, err)
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s the %s: %w", what, part, err)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s the %s: %w", what, part, ErrNoSwitch)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s the %s: %s", what, part, strings.TrimSpace(string(said)))
	}
	return nil
}
