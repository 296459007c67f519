package framework

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// recorder is the flight recorder: it notes every request of the spec that runs, with its answer. Headers are not
// noted, so no credentials are.
type recorder struct {
	mu       sync.Mutex
	requests []v1alpha1.Request
}

// bodyLimit is how much of a body the recorder keeps, in bytes.
const bodyLimit = 4 << 10

// around wraps a transport of client-go's.
func (r *recorder) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		request := v1alpha1.Request{At: time.Now(), Verb: sent.Method, Path: sent.URL.RequestURI(), Body: bodyOf(sent)}
		answer, err := next.RoundTrip(sent)
		request.Latency = time.Since(request.At)
		if err != nil {
			request.Error = err.Error()
		} else {
			request.Status = answer.StatusCode
			request.Warnings = warningsOf(answer)
			request.Refusal = refusalOf(answer)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, request)
		return answer, err
	})
}

// take hands out what was recorded since the last call.
func (r *recorder) take() []v1alpha1.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// bodyOf reads a copy of what is being sent. The content of Secrets is nobody's business.
func bodyOf(sent *http.Request) string {
	if sent.GetBody == nil || strings.Contains(sent.URL.Path, "/secrets") {
		return ""
	}
	body, err := sent.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, bodyLimit))
	if err != nil {
		return ""
	}
	return string(text)
}

// warningsOf reads the texts of an answer's warnings; a header that is none is left out.
func warningsOf(answer *http.Response) []string {
	var texts []string
	headers, _ := utilnet.ParseWarningHeaders(answer.Header.Values("Warning"))
	for _, header := range headers {
		texts = append(texts, header.Text)
	}
	return texts
}

// refusalOf reads the message of a refusal and leaves the answer as if nobody had.
func refusalOf(answer *http.Response) string {
	if answer.StatusCode < http.StatusBadRequest {
		return ""
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return ""
	}
	status := metav1.Status{}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(body[:min(len(body), bodyLimit)])
}
