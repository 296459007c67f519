package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/exposure"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/webhookserver"
)

// receiver receives the API server's reviews. It is separate from the decision on them, which does not depend on where they arrive.
type receiver interface {
	// ClientConfig returns the URL or the Service for the API server, and Place describes it.
	ClientConfig() registrationv1.WebhookClientConfig
	Place() string
	// Close stops it.
	Close() error
}

// receive starts a receiver on this machine, or in this pod.
func receive(ctx context.Context, c *framework.Cluster, webhook *Webhook) receiver {
	ginkgo.GinkgoHelper()
	handler := &admission.Webhook{Handler: admission.HandlerFunc(webhook.handle)}
	if c.Session().WebhookService {
		return receiveBehindService(ctx, c, handler)
	}
	host := c.Session().WebhookHost
	server, err := webhookserver.StartWebhook(host, host, handler)
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: set --webhook-host to an address of this machine", err))
	}
	ginkgo.DeferCleanup(server.Close)
	return server
}

// serviceReceiver is a receiver that the API server reaches through a Service of the run.
type serviceReceiver struct {
	*webhookserver.Server
	service exposure.Service
}

// ClientConfig names the Service.
func (r serviceReceiver) ClientConfig() registrationv1.WebhookClientConfig {
	config := r.Server.ClientConfig()
	config.URL = nil
	config.Service = &registrationv1.ServiceReference{
		Namespace: r.service.Namespace, Name: r.service.Name, Path: new(r.Path()), Port: new(int32(exposure.Port)),
	}
	return config
}

// Place names the Service and the address behind it.
func (r serviceReceiver) Place() string {
	return fmt.Sprintf("Service %s in namespace %s (%s)", r.service.Name, r.service.Namespace, r.Server.Place())
}

// receiveBehindService starts a receiver in a pod, and creates the Service that leads to it. Both end with the spec. If the run is killed,
// the Service leads nowhere, and the API server ignores that the webhook cannot be called; see webhook.
func receiveBehindService(ctx context.Context, c *framework.Cluster, handler http.Handler) receiver {
	ginkgo.GinkgoHelper()
	own := c.Session()
	service := exposure.Service{Namespace: own.Namespace, Name: "webhook-" + rand.String(6), Labels: own.Labels(), Address: own.WebhookHost}
	server, err := webhookserver.StartWebhook(service.Host(), own.WebhookHost, handler)
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("%v: set POD_IP to the address of the pod", err))
	}
	ginkgo.DeferCleanup(server.Close)
	service.TargetPort = int32(server.Port()) //nolint:gosec // a port
	remove, err := service.Create(ctx, own.Harness)
	if err != nil {
		ginkgo.Skip(fmt.Sprintf("the Service of a webhook cannot be created: %v", err))
	}
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { remove(ctx) })
	return serviceReceiver{server, service}
}
