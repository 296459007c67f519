package webhookserver

import (
	"context"
	"fmt"
	"net/http"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/exposure"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Receiver receives the API server's reviews, on this machine or in this pod. It is separate from the decision on them, which does not depend on
// where they arrive.
type Receiver struct {
	*Server
	// service leads to a receiver in a pod; nil for none.
	service *exposure.Service
	remove  func(context.Context)
}

// Open starts a receiver for a run: in a pod with a Service that leads to it. If the run is killed, the Service leads nowhere, and the API
// server ignores that the webhook cannot be called; see Webhook. Close ends both.
func Open(ctx context.Context, with *client.Client, own session.Config, handler http.Handler) (Receiver, error) {
	if own.WebhookService {
		return receiveBehindService(ctx, with, own, handler)
	}
	server, err := StartWebhook(own.WebhookHost, own.WebhookHost, handler)
	if err != nil {
		return Receiver{}, fmt.Errorf("%w: set --webhook-host to an address of this machine", err)
	}
	return Receiver{Server: server, remove: func(context.Context) {}}, nil
}

func receiveBehindService(ctx context.Context, with *client.Client, own session.Config, handler http.Handler) (Receiver, error) {
	service := exposure.Service{Namespace: own.Namespace, Name: "webhook-" + rand.String(6), Labels: own.Labels(), Address: own.WebhookHost}
	server, err := StartWebhook(service.Host(), own.WebhookHost, handler)
	if err != nil {
		return Receiver{}, fmt.Errorf("%w: set POD_IP to the address of the pod", err)
	}
	service.TargetPort = int32(server.Port()) //nolint:gosec // a port
	remove, err := service.Create(ctx, with)
	if err != nil {
		_ = server.Close()
		return Receiver{}, fmt.Errorf("the Service of a webhook cannot be created: %w", err)
	}
	return Receiver{server, &service, remove}, nil
}

// ClientConfig returns the URL or the Service for the API server.
func (r Receiver) ClientConfig() registrationv1.WebhookClientConfig {
	config := r.Server.ClientConfig()
	if r.service != nil {
		config.URL = nil
		config.Service = &registrationv1.ServiceReference{
			Namespace: r.service.Namespace, Name: r.service.Name, Path: new(r.Path()), Port: new(int32(exposure.Port)),
		}
	}
	return config
}

// Place describes where the API server calls it.
func (r Receiver) Place() string {
	if r.service == nil {
		return r.Server.Place()
	}
	return fmt.Sprintf("Service %s in namespace %s (%s)", r.service.Name, r.service.Namespace, r.Server.Place())
}

// Close ends it, and deletes the Service.
func (r Receiver) Close(ctx context.Context) {
	r.remove(ctx)
	_ = r.Server.Close()
}
