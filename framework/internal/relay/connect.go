package relay

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http2"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// Pod is a pod with a relay.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Token is that of the relay.
	Token string `json:"token"`
}

// Server serves the requests that a relay receives for a host.
type Server struct {
	pod        Pod
	bundle     []byte
	connection net.Conn
}

// StartAs connects to a relay through the API server's pod proxy, and serves the requests for a host name until the server is closed.
func StartAs(ctx context.Context, with *client.Client, pod Pod, name string, handler http.Handler) (*Server, error) {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/https:%s:%d/proxy%s", pod.Namespace, pod.Name, Port, connectPath)
	header := http.Header{}
	header.Set(tokenHeader, pod.Token)
	header.Set(hostHeader, name)
	stream, answer, err := with.Upgrade(ctx, path, protocol, header)
	if err != nil {
		return nil, fmt.Errorf("connect to pod %q in namespace %q through the API server: %w", pod.Name, pod.Namespace, err)
	}
	bundle, err := base64.StdEncoding.DecodeString(answer.Get(bundleHeader))
	if err != nil {
		return nil, fmt.Errorf("read the CA of pod %q in namespace %q: %w", pod.Name, pod.Namespace, err)
	}
	connection := connected(stream)
	//nolint:staticcheck // the server of net/http times out an idle connection
	go (&http2.Server{}).ServeConn(connection, &http2.ServeConnOpts{Handler: handler, BaseConfig: &http.Server{ErrorLog: quietly, ReadHeaderTimeout: headerTimeout}})
	return &Server{pod: pod, bundle: bundle, connection: connection}, nil
}

// connected returns a network connection that uses a stream, and closes it.
func connected(stream io.ReadWriteCloser) net.Conn {
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(stream, far)
		_ = stream.Close()
	}()
	go func() {
		_, _ = io.Copy(far, stream)
		_ = far.Close()
	}()
	return near
}

// ClientConfig returns the CA bundle that the API server must trust. The Service that leads to the pod is missing.
func (s *Server) ClientConfig() registrationv1.WebhookClientConfig {
	return registrationv1.WebhookClientConfig{CABundle: s.bundle}
}

// Place describes where the API server calls the server, for messages.
func (s *Server) Place() string {
	return fmt.Sprintf("pod %q in namespace %q", s.pod.Name, s.pod.Namespace)
}

// Port is the port of the relay.
func (s *Server) Port() int64 { return Port }

// Close ends the server.
func (s *Server) Close() error { return s.connection.Close() }
