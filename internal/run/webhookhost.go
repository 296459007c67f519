package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// lookupTimeout limits the lookup of the name of this machine.
const lookupTimeout = 10 * time.Second

// checkWebhookHost refuses an address or a name on which no webhook can listen. The behaviors that need one would be skipped otherwise.
func (o *Options) checkWebhookHost(ctx context.Context) error {
	host := o.Settings.WebhookHost
	if host == "" {
		return nil
	}
	address := net.ParseIP(host)
	switch {
	case address == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(host))) > 0:
		return o.invalidWebhookHost("it is no IP address and no DNS name; write it without a scheme and a port")
	case address != nil && (address.IsUnspecified() || address.IsMulticast()):
		return o.invalidWebhookHost("no API server can connect to it; use an address of this machine")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err == nil {
		return listener.Close()
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return o.invalidWebhookHost(fmt.Sprintf("the name cannot be resolved (%s); use an IP address of this machine", unknown.Err))
	}
	return o.invalidWebhookHost(fmt.Sprintf("webhooks cannot listen there (%v); use an address of this machine", errors.Unwrap(err)))
}

func (o *Options) invalidWebhookHost(reason string) error {
	return fmt.Errorf("%s %q: %s", o.Name("webhook-host"), o.Settings.WebhookHost, reason)
}
