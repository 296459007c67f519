// Package component lets specs, which run in worker processes, stop and start components of a cluster that the runner
// made, and give its kubelet static pods: the runner serves a socket, and only its user can reach it.
package component

import (
	"bytes"
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

// StaticPods give the kubelet the manifests of static pods, and take them from it, by the pods' names. Both are nil where
// there is no kubelet.
type StaticPods struct {
	Put    func(name string, manifest []byte) error
	Remove func(name string) error
}

// server serves what can be asked for, one at a time.
type server struct {
	http.Server
	busy sync.Mutex
}

// Serve makes a socket, in a directory that only its user can reach, and serves switches and static pods on it until it is
// closed. Closing it interrupts what is being done, and waits for that to end.
func Serve(socket string, switches map[Component]Switch, pods StaticPods) (io.Closer, error) {
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
	if pods.Put != nil {
		mux.HandleFunc("PUT "+staticPods+"{name}", server.put(pods))
		mux.HandleFunc("DELETE "+staticPods+"{name}", server.remove(pods))
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

func (s *server) put(pods StaticPods) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(context.Context) error {
			manifest, err := io.ReadAll(request.Body)
			if err != nil {
				return err
			}
			return pods.Put(request.PathValue("name"), manifest)
		})(writer, request)
	}
}

func (s *server) remove(pods StaticPods) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(context.Context) error { return pods.Remove(request.PathValue("name")) })(writer, request)
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
	return ask(ctx, socket, "stop the "+string(component), http.MethodPost, "/"+string(component)+"/stop", nil)
}

// Start starts a component, through the socket.
func Start(ctx context.Context, socket string, component Component) error {
	return ask(ctx, socket, "start the "+string(component), http.MethodPost, "/"+string(component)+"/start", nil)
}

// staticPods is below which path the static pods are.
const staticPods = "/static-pods/"

// PutStaticPod gives the kubelet the manifest of a static pod, through the socket.
func PutStaticPod(ctx context.Context, socket, name string, manifest []byte) error {
	return ask(ctx, socket, "run the static pod "+name, http.MethodPut, staticPods+name, manifest)
}

// RemoveStaticPod takes the manifest from it.
func RemoveStaticPod(ctx context.Context, socket, name string) error {
	return ask(ctx, socket, "end the static pod "+name, http.MethodDelete, staticPods+name, nil)
}

// ErrNoSwitch says that nobody can stop or start this component of the cluster, or give it static pods.
var ErrNoSwitch = errors.New("only possible on a local cluster with this component")

func ask(ctx context.Context, socket, what, method, path string, body []byte) error {
	if socket == "" {
		return fmt.Errorf("%s: %w", what, ErrNoSwitch)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, method, "http://runner"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { _ = response.Body.Close() }()
	message, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", what, ErrNoSwitch)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", what, strings.TrimSpace(string(message)))
	}
	return nil
}
