// Package component lets worker processes stop and start components of a cluster that the runner created, and give static pods to its
// kubelet. The runner serves a socket that only its user can access.
package component

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Component is a component of a cluster that can be stopped and started.
type Component string

// The components, by the names of their binaries.
const (
	// Kubelet is the kubelet of a node: see On. Stopping it kills it, as a power failure would.
	Kubelet Component = "kubelet"
	// Runtime is the container runtime of a node: see On. Stopping it kills it, as a crash would. Containers continue to run.
	Runtime Component = "containerd"
	// Machine is the machine of a node: see On. Stopping it ends everything on the node and removes its disk. Starting it puts a new machine
	// with the same name in its place.
	Machine Component = "machine"
	// InService is the use of a node: see On. Stopping it adds the taint node.kubernetes.io/out-of-service to the Node, and starting it
	// removes the taint, as an administrator would.
	InService Component = "in-service"
	// ControllerManager is the kube-controller-manager. Stopping it terminates it gracefully, as an upgrade would.
	ControllerManager Component = "kube-controller-manager"
	// Scheduler is the kube-scheduler. Stopping it terminates it gracefully, as an upgrade would.
	Scheduler Component = "kube-scheduler"
	// APIServer is the kube-apiserver. Stopping it kills it, as a crash would.
	APIServer Component = "kube-apiserver"
)

// On is the component of a node.
func (c Component) On(node string) Component { return c + "/" + Component(node) }

// Node returns the node of a component; empty for one of the control plane.
func (c Component) Node() string {
	_, node, _ := strings.Cut(string(c), "/")
	return node
}

// kind is the component without its node.
func (c Component) kind() string {
	kind, _, _ := strings.Cut(string(c), "/")
	return kind
}

// Switch stops and starts a component. Both functions are idempotent and return when they are done.
type Switch struct {
	Stop, Start func(ctx context.Context) error
}

// StaticPods add and remove the manifests of static pods by name. Both are nil without a kubelet.
type StaticPods struct {
	// Put adds a manifest to a node; without a name of one to the first.
	Put func(node, name string, manifest []byte) error
	// Remove removes a manifest from the node that has it.
	Remove func(name string) error
}

// AuditLog returns the lines of the audit log about an object, each an event as JSON.
type AuditLog func(namespace, name string) ([]byte, error)

// server handles one request at a time.
type server struct {
	http.Server
	busy sync.Mutex
	// held are the numbers of those who hold a component stopped, and holds counts them all.
	held  map[Component]map[int]bool
	holds int
	turns turns
	// closed is set when nothing may be started.
	closed atomic.Bool
}

// Serve serves switches, static pods and the audit log on a socket in a directory that only its user can access, until it is closed. Close interrupts the
// current request and waits for it.
func Serve(socket string, switches map[Component]Switch, pods StaticPods, log AuditLog) (io.Closer, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve the component socket: %w", err)
	}
	mux := http.NewServeMux()
	server := &server{Server: http.Server{Handler: mux}, held: map[Component]map[int]bool{}} //nolint:gosec // our own socket has no slow clients
	server.turns.taken = map[turn]int{}
	server.turns.changed = sync.NewCond(&server.turns.mu)
	for component, its := range switches {
		mux.HandleFunc("POST /"+string(component)+"/stop", server.handle(its.Stop))
		mux.HandleFunc("POST /"+string(component)+"/start", server.handle(its.Start))
		mux.HandleFunc("POST /"+string(component)+"/hold", server.hold(component, its))
		mux.HandleFunc("POST /"+string(component)+"/release/{number}", server.handleRelease(component, its))
	}
	mux.HandleFunc("POST "+running+"{kind}", server.take(false))
	mux.HandleFunc("POST "+stopping+"{kind}", server.take(true))
	if pods.Put != nil {
		mux.HandleFunc("PUT "+staticPods+"{name}", server.put(pods))
		mux.HandleFunc("DELETE "+staticPods+"{name}", server.remove(pods))
	}
	if log != nil {
		mux.HandleFunc("GET "+auditEvents+"{namespace}/{name}", server.audit(log))
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

// hold stops a component, responds with a number, and holds the component stopped until it is released or the client is gone.
func (s *server) hold(component Component, its Switch) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if !s.turns.take(request.Context(), component.kind(), true) {
			return
		}
		defer s.turns.end(component.kind(), true)
		number := 0
		s.handle(func(ctx context.Context) error {
			if err := its.Stop(ctx); err != nil {
				return err
			}
			if s.held[component] == nil {
				s.held[component] = map[int]bool{}
			}
			s.holds++
			number = s.holds
			s.held[component][number] = true
			_, _ = fmt.Fprintln(writer, number)
			return http.NewResponseController(writer).Flush()
		})(writer, request)
		if number == 0 {
			return
		}
		<-request.Context().Done()
		s.busy.Lock()
		defer s.busy.Unlock()
		_ = s.release(context.WithoutCancel(request.Context()), component, its, number)
	}
}

// take waits for a turn, responds, and keeps it until the client is gone.
func (s *server) take(stops bool) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		kind := request.PathValue("kind")
		if !s.turns.take(request.Context(), kind, stops) {
			return
		}
		defer s.turns.end(kind, stops)
		_, _ = fmt.Fprintln(writer, kind)
		_ = http.NewResponseController(writer).Flush()
		<-request.Context().Done()
	}
}

// turns keep apart those who stop a kind of component, and those who need it running. Those who want the same share a turn.
type turns struct {
	mu      sync.Mutex
	changed *sync.Cond
	// taken counts those who have a turn.
	taken map[turn]int
}

// turn is one to stop a kind of component, or to have it running.
type turn struct {
	kind  string
	stops bool
}

// take waits for a turn. It is false when the context ends first.
func (t *turns) take(ctx context.Context, kind string, stops bool) bool {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.changed.Broadcast()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.taken[turn{kind, !stops}] > 0 && ctx.Err() == nil {
		t.changed.Wait()
	}
	if ctx.Err() != nil {
		return false
	}
	t.taken[turn{kind, stops}]++
	return true
}

// end ends a turn.
func (t *turns) end(kind string, stops bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[turn{kind, stops}]--
	t.changed.Broadcast()
}

func (s *server) handleRelease(component Component, its Switch) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(ctx context.Context) error {
			number, err := strconv.Atoi(request.PathValue("number"))
			if err != nil {
				return err
			}
			return s.release(ctx, component, its, number)
		})(writer, request)
	}
}

// release starts a component when the last one no longer holds it. One that does not start is still held.
func (s *server) release(ctx context.Context, component Component, its Switch, number int) error {
	if !s.held[component][number] || s.closed.Load() {
		return nil
	}
	if len(s.held[component]) == 1 {
		if err := its.Start(ctx); err != nil {
			return err
		}
	}
	delete(s.held[component], number)
	return nil
}

func (s *server) put(pods StaticPods) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(context.Context) error {
			manifest, err := io.ReadAll(request.Body)
			if err != nil {
				return err
			}
			return pods.Put(request.URL.Query().Get(nodeParameter), request.PathValue("name"), manifest)
		})(writer, request)
	}
}

func (s *server) remove(pods StaticPods) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(context.Context) error { return pods.Remove(request.PathValue("name")) })(writer, request)
	}
}

func (s *server) audit(log AuditLog) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		s.handle(func(context.Context) error {
			lines, err := log(request.PathValue("namespace"), request.PathValue("name"))
			if err == nil {
				_, err = writer.Write(lines)
			}
			return err
		})(writer, request)
	}
}

// Close stops the server.
func (s *server) Close() error {
	s.closed.Store(true)
	err := s.Server.Close()
	s.busy.Lock() // until the current request has ended
	defer s.busy.Unlock()
	return err
}

// Stop stops a component through the socket.
func Stop(ctx context.Context, socket string, component Component) error {
	return send(ctx, socket, "stop the "+string(component), http.MethodPost, "/"+string(component)+"/stop", nil)
}

// Start starts a component through the socket.
func Start(ctx context.Context, socket string, component Component) error {
	return send(ctx, socket, "start the "+string(component), http.MethodPost, "/"+string(component)+"/start", nil)
}

// Hold stops a component through the socket, and holds it stopped until the returned function is called or this process ends. It starts again when the
// last one of several no longer holds it. It waits for those who need the component running: see KeepRunning.
func Hold(ctx context.Context, socket string, component Component) (release func(context.Context) error, err error) {
	what := "stop the " + string(component)
	answer, end, err := keepOpen(ctx, socket, what, "/"+string(component)+"/hold")
	if err != nil {
		return nil, err
	}
	var number int
	if _, err := fmt.Sscan(answer, &number); err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return func(ctx context.Context) error {
		defer end()
		return send(ctx, socket, "start the "+string(component), http.MethodPost, fmt.Sprint("/", component, "/release/", number), nil)
	}, nil
}

// running and stopping are the path prefixes of turns.
const (
	running  = "/running/"
	stopping = "/stopping/"
)

// KeepRunning waits until a component is no longer stopped, on whatever node, and then keeps others from that, until the returned function is called or this
// process ends. A container that is starting does not survive that its kubelet is killed.
func KeepRunning(ctx context.Context, socket string, component Component) (end func(), err error) {
	_, end, err = keepOpen(ctx, socket, "keep the "+string(component)+" running", running+component.kind())
	return end, err
}

// WillStop waits for those who need a component running, and keeps others from that, until the returned function is called or this process ends. Hold
// does not wait then.
func WillStop(ctx context.Context, socket string, component Component) (end func(), err error) {
	_, end, err = keepOpen(ctx, socket, "get ready to stop the "+string(component), stopping+component.kind())
	return end, err
}

// keepOpen sends a request, returns the first line of the response, and keeps the connection open.
func keepOpen(ctx context.Context, socket, what, path string) (line string, end func(), err error) {
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	answered := context.AfterFunc(ctx, end)
	response, err := open(keeping, socket, what, http.MethodPost, path, nil)
	if err == nil {
		if line, err = bufio.NewReader(response).ReadString('\n'); err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}
	answered()
	if err != nil {
		end()
		return "", nil, err
	}
	return line, end, nil
}

// staticPods is the path prefix of static pods, and nodeParameter the query parameter for their node.
const (
	staticPods    = "/static-pods/"
	nodeParameter = "node"
)

// PutStaticPod gives the kubelet of a node the manifest of a static pod through the socket; without a name of a node the first.
func PutStaticPod(ctx context.Context, socket, node, name string, manifest []byte) error {
	query := url.Values{nodeParameter: {node}}.Encode()
	return send(ctx, socket, "run the static pod "+name, http.MethodPut, staticPods+name+"?"+query, manifest)
}

// RemoveStaticPod removes the manifest of a static pod through the socket.
func RemoveStaticPod(ctx context.Context, socket, name string) error {
	return send(ctx, socket, "end the static pod "+name, http.MethodDelete, staticPods+name, nil)
}

// auditEvents is the path prefix of audit events.
const auditEvents = "/audit-events/"

// AuditEvents returns the lines of the audit log about an object through the socket, each an event as JSON. The API server writes them after
// the response.
func AuditEvents(ctx context.Context, socket, namespace, name string) ([]byte, error) {
	return call(ctx, socket, "read the audit log", http.MethodGet, auditEvents+namespace+"/"+name, nil)
}

// ErrUnsupported is the error when a component of the cluster cannot be stopped and started, or has no static pods or audit log.
var ErrUnsupported = errors.New("only possible on an embedded cluster with this component")

// send sends a request whose response has no content.
func send(ctx context.Context, socket, what, method, path string, body []byte) error {
	_, err := call(ctx, socket, what, method, path, body)
	return err
}

func call(ctx context.Context, socket, what, method, path string, body []byte) ([]byte, error) {
	content, err := open(ctx, socket, what, method, path, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	read, err := io.ReadAll(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return read, nil
}

// open sends a request, and returns the content of the response to read and to close.
func open(ctx context.Context, socket, what, method, path string, body []byte) (io.ReadCloser, error) {
	if socket == "" {
		return nil, fmt.Errorf("%s: %w", what, ErrUnsupported)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, method, "http://runner"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	response, err := client.Do(request)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	case response.StatusCode == http.StatusOK:
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s: %w", what, ErrUnsupported)
	}
	message, err := io.ReadAll(response.Body)
	return nil, fmt.Errorf("%s: %w", what, errors.Join(err, errors.New(strings.TrimSpace(string(message)))))
}
