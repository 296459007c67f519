// Package webhookserver is where reviews of an API server are received; whoever starts it tests them.
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
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/internal/certificates"
)

// Server serves one webhook on a port of its own. Its key is in memory only.
type Server struct {
	listener net.Listener
	bundle   []byte
	server   *http.Server
}

// headerTimeout bounds how long the API server may take to say what it asks.
const headerTimeout = 30 * time.Second

// Start serves reviews on a host until the server is closed. It fails when the host is no address of this machine.
func Start(host string, handler admission.Handler) (*Server, error) {
	certificate, bundle, err := certificates.ForServer(host)
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
		server: &http.Server{Handler: &admission.Webhook{Handler: handler}, ReadHeaderTimeout: headerTimeout},
	}
	go func() { _ = started.server.Serve(listener) }()
	return started, nil
}

// firstPort and ports are those that a webhook takes where one of them is free.
const firstPort, ports = 29443, 100

// listen takes the first port that is free of a few: an API server keeps metrics of every address that it has called until it ends.
func listen(host string) (net.Listener, error) {
	for port := firstPort; port < firstPort+ports; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if taken := (*os.SyscallError)(nil); !errors.As(err, &taken) { // it listens, or the host is not found, as with any other port
			return listener, err
		}
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// ClientConfig is where the API server finds it, and what it trusts there.
func (s *Server) ClientConfig() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: new("https://" + s.listener.Addr().String()), CABundle: s.bundle}
}

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }
