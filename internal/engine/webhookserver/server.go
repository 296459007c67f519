// Package webhookserver receives admission reviews, and requests for an aggregated API, from an API server.
package webhookserver

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
)

// Server serves one webhook or one aggregated API on its own port. Its key is in memory only.
type Server struct {
	listener net.Listener
	bundle   []byte
	path     string
	server   *http.Server
}

const (
	// headerTimeout limits how long a client may take to send the headers of a request, and headerLimit their size in bytes.
	headerTimeout, headerLimit = 30 * time.Second, 16 << 10
	// reviewLimit is the size limit of a review, in bytes. It contains up to two objects, and an API server accepts objects of up to 3 MiB.
	reviewLimit = 7 << 20
)

// StartWebhook is Start for a webhook. Only the API server knows its path, from the webhook's configuration: all others who can connect to
// the port are answered 404.
func StartWebhook(name, host string, handler http.Handler) (*Server, error) {
	path := "/" + strings.ToLower(rand.Text()) // a Service's path must be of DNS labels
	server, err := Start(name, host, only(path, handler))
	if err == nil {
		server.path = path
	}
	return server, err
}

// only serves requests for one path, of limited size.
func only(path string, handler http.Handler) http.Handler {
	limited := http.MaxBytesHandler(handler, reviewLimit)
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if subtle.ConstantTimeCompare([]byte(request.URL.Path), []byte(path)) == 0 {
			response.Header().Set("Connection", "close") // strangers keep no connections
			http.NotFound(response, request)
			return
		}
		limited.ServeHTTP(response, request)
	})
}

// Start serves requests on a host until the server is closed. Clients know it by a name. It fails when the host is not an address of this
// machine.
func Start(name, host string, handler http.Handler) (*Server, error) {
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
		server: &http.Server{
			Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: headerLimit,
			ErrorLog: log.New(io.Discard, "", 0), // strangers may connect, and choose what it would contain
		},
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

// ClientConfig returns the URL of a webhook and the CA bundle that the API server must trust.
func (s *Server) ClientConfig() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{URL: new(s.Place() + s.path), CABundle: s.bundle}
}

// Path is the path of a webhook.
func (s *Server) Path() string { return s.path }

// Place describes where the server is called, for messages. It does not contain the path.
func (s *Server) Place() string { return "https://" + s.listener.Addr().String() }

// Port is the port of the server.
func (s *Server) Port() int64 { return int64(s.listener.Addr().(*net.TCPAddr).Port) }

// Close ends the server.
func (s *Server) Close() error { return s.server.Close() }
