package preflight

import (
	"context"
	"net"
	"net/url"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// WebhookHost returns the address under which an API server can reach this machine: the one that the user set, loopback for a local server,
// or the pod's address inside the cluster.
func WebhookHost(named, server string) string {
	if named != "" {
		return named
	}
	if address, err := url.Parse(server); err == nil {
		host := address.Hostname()
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			return "127.0.0.1"
		}
	}
	return os.Getenv("POD_IP")
}

// probeWebhook reports why webhooks cannot be tested. Whether the API server can reach one is known only when a spec creates it.
func probeWebhook(ctx context.Context, t Target) error {
	if t.WebhookHost == "" {
		return skipReason{text: "the API server cannot reach a webhook on this machine: set --webhook-host to an address that it can reach, or run in a Job"}
	}
	if t.WebhookService {
		create := authorizationv1.ResourceAttributes{Verb: "create", Resource: "endpointslices", Group: "discovery.k8s.io", Namespace: t.Namespace}
		if err := permitted(ctx, t, create); err != nil {
			return err
		}
	}
	return mayCreate("validatingwebhookconfigurations", "admissionregistration.k8s.io")(ctx, t)
}
