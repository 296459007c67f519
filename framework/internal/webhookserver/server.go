// Package webhookserver receives admission reviews, and requests for an aggregated API, from an API server.
package webhookserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/certificates"
)

// Server serves one webhook or one aggregated API on its own port. Its key is in memory only.
type Server struct {
	listener net.Listener
	bundle   []byte
	server   *http.Server
}

// headerTimeout limits how long the API server may take to send the headers of a request.
const headerTimeout = 30 * time.Second

// Start serves requests on a host until the server is closed. It fails when the host is not an address of this machine.
func Start(host string, handler http.Handler) (*Server, error) { return StartAs(host, host, handler) }

// StartAs is Start for a server that clients know by another name.
func StartAs(name, host string, handler http.Handler) (*Server, error) {
	certificate, bundle, err := certificates.ForServer(name)
	if err != nil {
		return nil, err
	}
	listener, err := listen(host)
	if err != nil {
		return nil, fmt.Errorf("listen for a webhook on %s: %w", host, err)
	}
	listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	started := &Server{
		listener: listener, bundle: bundle,
		server: &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout},
	}
	go func() { _ = started.server.Serve(listener) }()
	return started, nil
}

// firstPort and ports are the preferred ports.
const firstPort, ports = 29443, 100

// listen takes the first free port of a fixed range, because an API server keeps metrics of every address that it has called.
func listen(host string) (net.Listener, error) {
	for port := firstPort; port < firstPort+ports; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if taken := (*os.SyscallError)(nil); !errors.As(err, &taken) { // it listens, or the host is invalid, which no other port would fix
			return listener, err
		}
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// ClientConfig returns the URL of the server and the CA bundle that the API server must trust.
func (s *Server) ClientConfig() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: new(s.Place()), CABundle: s.bundle}
}

// Place describes where the server is called, for messages.
func (s *Server) Place() string { return "https://" + s.listener.Addr().String() }

// Port is the port of the server.
func (s *Server) Port() int64 { return int64(s.listener.Addr().(*net.TCPAddr).Port) }

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }
