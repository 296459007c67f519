package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// persistent is the transport of discovery, watches and kubectl, which do not retry. It retries reads, including truncated responses, and
// writes that the server rejected because of load.
type persistent struct{ next http.RoundTripper }

// withRetries returns an HTTP client with a persistent transport.
func withRetries(client *http.Client) *http.Client {
	copied := *client
	if copied.Transport == nil {
		copied.Transport = http.DefaultTransport
	}
	copied.Transport = persistent{copied.Transport}
	return &copied
}

// RoundTrip sends a request until the server decides on it, or the time for retries is over.
func (p persistent) RoundTrip(request *http.Request) (*http.Response, error) {
	var before error
	delay, began := delays(), time.Now()
	for {
		response, err := p.send(request)
		if err != nil && before != nil && request.Context().Err() != nil {
			return nil, before // more helpful than the end of the context
		}
		before = err
		lasts, after := retriesFor(request, response, err)
		if time.Since(began) > lasts || request.Context().Err() != nil {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
		Wait(request.Context(), max(delay(), min(after, longestDelay)))
	}
}

// send sends a request once and reads the whole response, unless it streams.
func (p persistent) send(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		request.Body = body
	}
	response, err := p.next.RoundTrip(request)
	if err != nil || streams(request) || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// retriesFor returns how long a request with this response is retried, and the delay that the server asks for.
func retriesFor(request *http.Request, response *http.Response, err error) (lasts, after time.Duration) {
	again := request.Method == http.MethodGet || request.Body == nil || request.GetBody != nil
	if err != nil {
		if again && !redirected(err) && !lacksCredentials(err) && (request.Method == http.MethodGet || NeverConnected(err)) {
			return patience, 0
		}
		return -1, 0
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	switch {
	case response.StatusCode == http.StatusTooManyRequests && again && !decidedByBudget(response):
		return throttledPatience, after
	case response.StatusCode >= http.StatusInternalServerError && request.Method == http.MethodGet:
		return patience, after
	}
	return -1, 0
}

// decidedByBudget reports whether a disruption budget refused an eviction. It leaves the response readable.
func decidedByBudget(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	status := metav1.Status{}
	return json.Unmarshal(body, &status) == nil &&
		apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, policyv1.DisruptionBudgetCause)
}

// failing is a reader that fails with an error, or ends.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil || errors.Is(f.err, io.EOF) {
		return 0, io.EOF
	}
	return 0, f.err
}
