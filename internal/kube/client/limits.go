package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/credentials"
)

// All requests of a run use one transport, which limits what a server may do to the run: response size, response time, and redirects.
// guard.go limits what the run may do to the server.

const (
	// responseLimit is the size limit of a response, in bytes. A run reads single objects, its own objects, and pages of lists, which are
	// all much smaller. An API server accepts objects of up to 3 MiB.
	responseLimit = 16 << 20
	// proxyLimit is the size limit of a response to kubectl, which reads the schemas of all kinds.
	proxyLimit = 64 << 20
	// responseTime limits every request except watches. An API server ends those after 60 s (--request-timeout).
	responseTime = 70 * time.Second
)

// httpClient returns an HTTP client with the credentials of a configuration and the limits.
func httpClient(config *rest.Config, guard *Guard) (*http.Client, error) {
	transport, err := limitedTransport(config, guard, responseLimit)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: config.Timeout}, nil
}

// limitedTransport returns the transport that all requests use.
func limitedTransport(config *rest.Config, guard *Guard, limit int64) (http.RoundTripper, error) {
	transport, err := credentials.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return guard.guarded(limited(transport, limit, responseTime), base.Path), nil
}

// limited limits the size and the duration of responses, and rejects redirects to other servers.
func limited(next http.RoundTripper, limit int64, patience time.Duration) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		ctx, cancel := withTimeout(request, patience)
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err == nil {
			err = rejectRedirects(request, response)
		}
		if err != nil {
			err = causeOf(ctx, err)
			cancel()
			return nil, err
		}
		if response.StatusCode != http.StatusSwitchingProtocols { // its body is writable
			response.Body = &limitedBody{body: response.Body, limit: limit, ctx: ctx, cancel: cancel}
		}
		return response, nil
	})
}

// withTimeout returns the context of a request. It times out unless the request streams.
func withTimeout(request *http.Request, patience time.Duration) (context.Context, context.CancelFunc) {
	if streams(request) {
		return request.Context(), func() {}
	}
	return context.WithTimeoutCause(request.Context(), patience, fmt.Errorf("no complete response within %s", patience))
}

// streams reports whether a response does not end by itself: a watch, or a log that is followed.
func streams(request *http.Request) bool {
	query := request.URL.Query()
	return isTrue(query.Get("watch")) || isTrue(query.Get("follow")) || request.Header.Get("Upgrade") != ""
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// rejectRedirects rejects a redirect to another server, which would receive the credentials.
func rejectRedirects(request *http.Request, response *http.Response) error {
	if response.StatusCode < 300 || response.StatusCode > 399 {
		return nil
	}
	location, err := response.Location()
	if err != nil {
		return nil //nolint:nilerr // no location to follow
	}
	if location.Scheme == request.URL.Scheme && location.Host == request.URL.Host {
		return nil
	}
	_ = response.Body.Close()
	return redirection{location.Scheme + "://" + location.Host}
}

// redirection is the error for a redirect to another server. It is not retried.
type redirection struct{ to string }

func (r redirection) Error() string {
	return fmt.Sprintf("the server redirects to another server, %s: redirects are not followed; use that server in the kubeconfig if it is the cluster's", r.to)
}

// lacksCredentials reports whether a request was not sent, because an exec plugin failed. A retry would run it again.
func lacksCredentials(err error) bool { return errors.As(err, new(credentials.Error)) }

// redirected reports whether an error is a redirect to another server.
func redirected(err error) bool { return errors.As(err, &redirection{}) }

// causeOf returns the cause of the context's end if that caused the error, else the error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// limitedBody is a response body with limits.
type limitedBody struct {
	body        io.ReadCloser
	limit, read int64
	ctx         context.Context //nolint:containedctx // that of the request, which is over when the time is up
	cancel      context.CancelFunc
}

// Read fails when a limit is exceeded.
func (b *limitedBody) Read(into []byte) (int, error) {
	n, err := b.body.Read(into[:min(int64(len(into)), b.limit-b.read+1)])
	if b.read += int64(n); b.read > b.limit {
		b.read = b.limit
		return 0, fmt.Errorf("response exceeds the %d MiB limit", b.limit>>20)
	}
	return n, causeOf(b.ctx, err)
}

// Close closes the body.
func (b *limitedBody) Close() error {
	b.cancel()
	return b.body.Close()
}
