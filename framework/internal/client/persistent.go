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

// persistent is a way to the server for those who do not send again by themselves: discovery, watches and kubectl. A read is
// sent again where the way fails, or breaks in the middle of the response; a write only where the server did not look at it.
type persistent struct{ next http.RoundTripper }

// withRetries is a client whose way to the server is persistent.
func withRetries(client *http.Client) *http.Client {
	copied := *client
	if copied.Transport == nil {
		copied.Transport = http.DefaultTransport
	}
	copied.Transport = persistent{copied.Transport}
	return &copied
}

// RoundTrip sends a request until there is a response that says something of the request.
func (p persistent) RoundTrip(request *http.Request) (*http.Response, error) {
	var before error
	delay, began := delays(), time.Now()
	for {
		response, err := p.send(request)
		if err != nil && before != nil && request.Context().Err() != nil {
			return nil, before // says more than that the time is up
		}
		before = err
		bears, after := bearing(request, response, err)
		if time.Since(began) > bears || request.Context().Err() != nil {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
		Wait(request.Context(), max(delay(), min(after, longestDelay)))
	}
}

// send sends a request once. The response to a read is read to its end, unless it has none by itself.
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

// bearing says how long it is gone on sending a request that is answered so, and how long the server asks to wait.
func bearing(request *http.Request, response *http.Response, err error) (bears, after time.Duration) {
	again := request.Method == http.MethodGet || request.Body == nil || request.GetBody != nil
	if err != nil {
		if again && !redirected(err) && (request.Method == http.MethodGet || NeverConnected(err)) {
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

// decidedByBudget says that a disruption budget refused an eviction, and leaves the response as if nobody had read it.
func decidedByBudget(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	status := metav1.Status{}
	return json.Unmarshal(body, &status) == nil &&
		apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, policyv1.DisruptionBudgetCause)
}

// failing is a reader that fails, or ends.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil || errors.Is(f.err, io.EOF) {
		return 0, io.EOF
	}
	return 0, f.err
}
