package session

import (
	"context"
	"fmt"
	"net/http"

	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/relay"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/webhookserver"
)

// Server serves an admission webhook or an aggregated API in a pod.
type Server interface {
	// ClientConfig returns the CA bundle that the API server must trust.
	ClientConfig() registrationv1.WebhookClientConfig
	// Place describes where the API server calls it, for messages.
	Place() string
	// Port is its port in the pod.
	Port() int64
	// Close ends it.
	Close() error
}

// ServeInPod serves requests for a host name in this pod, or through the relay in a pod of the run. The address of the pod is WebhookHost.
func (s *Session) ServeInPod(ctx context.Context, name string, handler http.Handler) (Server, error) {
	if s.WebhookPod != nil {
		return relay.StartAs(ctx, s.Harness, *s.WebhookPod, name, handler)
	}
	server, err := webhookserver.StartAs(name, s.WebhookHost, handler)
	if err != nil {
		return nil, fmt.Errorf("%w: set POD_IP to the address of the pod", err)
	}
	return server, nil
}

// RelayTokenVariable is the environment variable with the token of a relay.
const RelayTokenVariable = relay.TokenVariable

// Relay passes requests of an API server on to the run, until the context ends. It is what the pod of a WebhookImage does. Only those who
// know the token may connect. It fails when its port is taken.
func Relay(ctx context.Context, token string) error { return relay.Serve(ctx, relay.Address(), token) }
