// Package relay passes requests of an API server to a process that it cannot reach. A relay in a pod receives them. The process connects to
// the relay through the API server's pod proxy, and serves the requests over that connection (HTTP/2, in which the relay is the client).
package relay

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/deletion-conformance/deletion-conformance/internal/certificates"
)

// Port is the port of a relay, and TokenVariable the environment variable with its token. Only those who know the token may connect.
const (
	Port          = 8443
	TokenVariable = "DELETION_CONFORMANCE_RELAY_TOKEN" //nolint:gosec // the name of a variable
)

const (
	// connectPath is the path of a request to connect, and protocol the protocol to which the connection is upgraded.
	connectPath, protocol = "/deletion-conformance/connect", "deletion-conformance-relay"
	// tokenHeader and hostHeader are headers of that request: the token, and the name of the host whose requests the process serves.
	tokenHeader, hostHeader = "Relay-Token", "Relay-Host"
	// bundleHeader is a header of the response: the PEM of the CA of that host, in base64.
	bundleHeader = "Relay-Ca-Bundle"
	// headerTimeout limits how long a client may take to send the headers of a request.
	headerTimeout = 30 * time.Second
	// quiet is how long a connection may be idle before the relay checks it, so that nothing between closes it.
	quiet = 15 * time.Second
)

// quietly drops what net/http logs: the connections of clients that have gone.
var quietly = log.New(io.Discard, "", 0)

// relay receives requests in a pod.
type relay struct {
	token string
	// own is the certificate for requests to connect, which the pod proxy does not verify.
	own tls.Certificate

	mu    sync.Mutex
	hosts map[string]host
}

// host is a name for which a process is connected.
type host struct {
	certificate tls.Certificate
	process     http.RoundTripper
	connection  net.Conn
}

// Serve relays requests at an address until the context ends.
func Serve(ctx context.Context, address, token string) error {
	own, _, err := certificates.ForServer("relay")
	if err != nil {
		return err
	}
	relay := &relay{token: token, own: own, hosts: map[string]host{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	server := &http.Server{
		Handler: relay, ReadHeaderTimeout: headerTimeout, ErrorLog: quietly,
		TLSConfig:    &tls.Config{GetCertificate: relay.certificate, MinVersion: tls.VersionTLS12},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // HTTP/2 connections cannot be upgraded
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", address, err)
	}
	return nil
}

// Address is the address at which a relay listens in its pod.
func Address() string { return ":" + strconv.Itoa(Port) }

// certificate returns the certificate of the host that a client names.
func (r *relay) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if host, connected := r.host(hello.ServerName); connected {
		return &host.certificate, nil
	}
	return &r.own, nil
}

func (r *relay) host(name string) (host, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, connected := r.hosts[name]
	return found, connected
}

// ServeHTTP connects a process, or passes a request on to the process of its host.
func (r *relay) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if request.URL.Path == connectPath {
		r.connect(response, request)
		return
	}
	name := request.TLS.ServerName
	host, connected := r.host(name)
	if !connected {
		http.Error(response, fmt.Sprintf("no process is connected for host %q", name), http.StatusServiceUnavailable)
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(passed *httputil.ProxyRequest) {
			passed.SetURL(&url.URL{Scheme: "https", Host: name})
			passed.SetXForwarded()
		},
		Transport: host.process,
		ErrorHandler: func(response http.ResponseWriter, _ *http.Request, err error) {
			http.Error(response, err.Error(), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(response, request)
}

// connect upgrades a connection, over which it passes on the requests for a host.
func (r *relay) connect(response http.ResponseWriter, request *http.Request) {
	name := request.Header.Get(hostHeader)
	switch {
	case subtle.ConstantTimeCompare([]byte(request.Header.Get(tokenHeader)), []byte(r.token)) == 0:
		http.Error(response, "wrong token", http.StatusForbidden)
		return
	case name == "" || request.Header.Get("Upgrade") != protocol:
		http.Error(response, "no upgrade to "+protocol+" for a host", http.StatusBadRequest)
		return
	}
	certificate, bundle, err := certificates.ForServer(name)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	connection, _, err := http.NewResponseController(response).Hijack()
	if err != nil {
		return // the process has gone
	}
	upgraded := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {protocol}, bundleHeader: {base64.StdEncoding.EncodeToString(bundle)},
	}}
	r.mu.Lock() // no request finds the host missing between the response and its entry
	defer r.mu.Unlock()
	if err := errors.Join(connection.SetDeadline(time.Time{}), upgraded.Write(connection)); err != nil {
		_ = connection.Close()
		return
	}
	//nolint:staticcheck // the counterpart of http2.Server
	process, err := (&http2.Transport{ReadIdleTimeout: quiet}).NewClientConn(closing{connection, func() { go r.forget(name, connection) }})
	if err != nil {
		_ = connection.Close()
		return
	}
	r.hosts[name] = host{certificate, process, connection}
}

// forget forgets the host of a connection that has ended.
func (r *relay) forget(name string, connection net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts[name].connection == connection {
		delete(r.hosts, name)
	}
}

// closing is a connection that calls a function when it is closed.
type closing struct {
	net.Conn
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.Conn.Close()
}
