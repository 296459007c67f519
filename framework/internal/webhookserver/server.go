// Package webhookserver is where reviews of an API server are received; whoever starts it judges them.
package webhookserver

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Server serves one webhook on a free port. Its key is in memory only.
type Server struct {
	// URL is where the API server finds it, and CABundle what it trusts there.
	URL      string
	CABundle []byte
	server   *http.Server
}

// headerTimeout bounds how long the API server may take to say what it asks.
const headerTimeout = 30 * time.Second

// Start serves reviews on a host until the server is closed. It fails when the host is no address of this machine.
func Start(host string, handler admission.Handler) (*Server, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for a webhook on %s: %w", host, err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for a webhook on %s: %w", host, err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return nil, fmt.Errorf("listen for a webhook on %s: %w", host, err)
	}
	started := &Server{
		URL: "https://" + listener.Addr().String(), CABundle: certificate,
		server: &http.Server{Handler: &admission.Webhook{Handler: handler}, ReadHeaderTimeout: headerTimeout},
	}
	go func() { _ = started.server.Serve(listener) }()
	return started, nil
}

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }
