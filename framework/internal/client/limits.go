package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// What a server may do to a run is bounded here, in the one way that all requests take: how much it may answer, how long that
// may take, and that it cannot send the run's credentials elsewhere. What a run may do to a server is bounded in guard.go.

const (
	// answerLimit is how large an answer may be, in bytes. A run asks for single objects, for its own objects, and for others
	// by the page: all that it reads is a small part of this. An API server itself takes objects of up to 3 MiB.
	answerLimit = 16 << 20
	// passedLimit is how large one may be that is passed on and not kept: kubectl reads what describes all kinds.
	passedLimit = 64 << 20
	// answerTime bounds a request that is no watch: an API server ends those after 60 s by itself (--request-timeout).
	answerTime = 70 * time.Second
)

// httpClient is an HTTP client with the credentials of a configuration, which keeps what the server does within bounds.
func httpClient(config *rest.Config, guard *Guard) (*http.Client, error) {
	transport, err := boundedTransport(config, guard, answerLimit)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: config.Timeout}, nil
}

// boundedTransport is the one way that all requests take.
func boundedTransport(config *rest.Config, guard *Guard, limit int64) (http.RoundTripper, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if config.BearerTokenFile != "" {
		transport = renewing(transport, config.BearerTokenFile)
	}
	return guard.guarded(bounded(transport, limit, answerTime), base.Path), nil
}

// renewing is a way to a server on which a request that the server did not know the token of (401), and so did not look
// at, is sent once more with what the token's file says now: client-go reads that once a minute, and it may have been
// rotated meanwhile.
func renewing(next http.RoundTripper, file string) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusUnauthorized || request.Body != nil && request.GetBody == nil {
			return response, err
		}
		token, err := os.ReadFile(file)
		if err != nil {
			return response, nil //nolint:nilerr // the refusal stands
		}
		again := request.Clone(request.Context())
		again.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		if request.GetBody != nil {
			if again.Body, err = request.GetBody(); err != nil {
				return response, nil //nolint:nilerr // the refusal stands
			}
		}
		_ = response.Body.Close()
		return next.RoundTrip(again)
	})
}

// bounded is a way to a server that keeps what the server does within bounds.
func bounded(next http.RoundTripper, limit int64, patience time.Duration) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		ctx, cancel := within(request, patience)
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err == nil {
			err = leadsElsewhere(request, response)
		}
		if err != nil {
			err = because(ctx, err)
			cancel()
			return nil, err
		}
		if response.StatusCode != http.StatusSwitchingProtocols { // which has a body to write to
			response.Body = &boundedBody{body: response.Body, limit: limit, ctx: ctx, cancel: cancel}
		}
		return response, nil
	})
}

// within is the context of a request, which ends when the time is up for an answer that is to have an end.
func within(request *http.Request, patience time.Duration) (context.Context, context.CancelFunc) {
	if streams(request) {
		return request.Context(), func() {}
	}
	return context.WithTimeoutCause(request.Context(), patience, fmt.Errorf("no whole answer within %s", patience))
}

// streams says that the answer to a request goes on for as long as it is wanted: a watch, or a log that is followed.
func streams(request *http.Request) bool {
	query := request.URL.Query()
	return isTrue(query.Get("watch")) || isTrue(query.Get("follow")) || request.Header.Get("Upgrade") != ""
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// leadsElsewhere refuses a redirection to another server: whoever follows it would take the credentials along.
func leadsElsewhere(request *http.Request, response *http.Response) error {
	if response.StatusCode < 300 || response.StatusCode > 399 {
		return nil
	}
	location, err := response.Location()
	if err != nil {
		return nil //nolint:nilerr // it leads nowhere
	}
	if location.Scheme == request.URL.Scheme && location.Host == request.URL.Host {
		return nil
	}
	_ = response.Body.Close()
	return redirection{location.Scheme + "://" + location.Host}
}

// redirection is a refusal to follow a server to another one. Asking once more leads nowhere else.
type redirection struct{ to string }

func (r redirection) Error() string {
	return fmt.Sprintf("the server redirects to another one, %s, which is not followed: name that in the kubeconfig if it is the cluster's", r.to)
}

// redirected says of an error that the server sent the request elsewhere.
func redirected(err error) bool { return errors.As(err, &redirection{}) }

// because is an error, or why its context is over where that is why.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		return cause
	}
	return err
}

// boundedBody is an answer's body that may not go on for ever.
type boundedBody struct {
	body        io.ReadCloser
	limit, read int64
	ctx         context.Context //nolint:containedctx // that of the request, which is over when the time is up
	cancel      context.CancelFunc
}

// Read fails when more comes than is allowed, or for longer.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.body.Read(into[:min(int64(len(into)), b.limit-b.read+1)])
	if b.read += int64(n); b.read > b.limit {
		b.read = b.limit
		return 0, fmt.Errorf("the answer is larger than %d MiB: no API server answers a run with so much", b.limit>>20)
	}
	return n, because(b.ctx, err)
}

// Close closes the body.
func (b *boundedBody) Close() error {
	b.cancel()
	return b.body.Close()
}
