package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/trace"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Recorder records every request of the current spec and the status of its response. It does not record headers and response bodies, so it
// records no credentials.
type Recorder struct {
	// Trace is the trace to which the requests belong; the zero value for none.
	Trace trace.TraceID
	// Private are values that bodies are recorded without.
	Private Private

	mu       sync.Mutex
	requests []v1alpha1.Request
	events   []v1alpha1.Observation
}

// bodyLimit limits recorded bodies, in bytes.
const bodyLimit = 4 << 10

// Wrap wraps a transport of client-go.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		request := v1alpha1.Request{At: time.Now(), Verb: sent.Method, Path: sent.URL.RequestURI()}
		if about, known := sent.Context().Value(subject{}).(Request); known {
			request.Object, request.Subresource = about.Object, about.Subresource
		}
		request.Body = r.bodyOf(sent, request.Object)
		sent, request.SpanID = r.traced(sent)
		response, err := next.RoundTrip(sent)
		request.Latency = time.Since(request.At)
		if err != nil {
			request.Error = err.Error()
		} else {
			request.Status = response.StatusCode
			request.Warnings = warningsOf(response)
			request.Refusal = RefusalIn(response)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, request)
		return response, err
	})
}

// Component records that a component of the cluster was stopped or started. It ignores a repeated event, as of a second start.
func (r *Recorder) Component(name, event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, last := range slices.Backward(r.events) {
		if last.Name == name && last.Type == event {
			return
		}
		if last.Name == name {
			break
		}
	}
	r.events = append(r.events, v1alpha1.Observation{
		At: time.Now(), Type: event, ObjectReference: v1alpha1.ObjectReference{Kind: "Component", Name: name, UID: types.UID(name)},
	})
}

// Take returns the requests recorded since the last call.
func (r *Recorder) Take() []v1alpha1.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}

// TakeEvents returns the events of components recorded since the last call.
func (r *Recorder) TakeEvents() []v1alpha1.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// subject is the context key of the request that the recorder describes.
type subject struct{}

// withSubject returns a context with the object of a request, for the recorder.
func withSubject(ctx context.Context, request Request) context.Context {
	return context.WithValue(ctx, subject{}, request)
}

// secretive are the resources whose bodies are not recorded: Secrets, and reviews of tokens.
var secretive = []schema.GroupResource{
	{Resource: "secrets"}, {Group: authenticationv1.GroupName, Resource: "tokenreviews"},
}

// bodyOf reads a copy of the request's body without private values, unless all of it is secret.
func (r *Recorder) bodyOf(sent *http.Request, about *v1alpha1.ObjectReference) string {
	if sent.GetBody == nil || about != nil && slices.Contains(secretive, schema.GroupResource{Group: about.Group, Resource: about.Resource}) {
		return ""
	}
	body, err := sent.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return ""
	}
	content = r.Private.without(content)
	return string(content[:min(len(content), bodyLimit)])
}

// warningsOf returns the texts of a response's warnings and ignores malformed headers.
func warningsOf(response *http.Response) []string {
	var texts []string
	headers, _ := utilnet.ParseWarningHeaders(response.Header.Values("Warning"))
	for _, header := range headers {
		texts = append(texts, header.Text)
	}
	return texts
}

// refusalLimit limits how much of a refusal is read, in bytes.
const refusalLimit = 1 << 20

// RefusalIn reads the message of a refusal and leaves the response readable.
func RefusalIn(response *http.Response) string {
	if response.StatusCode < http.StatusBadRequest {
		return ""
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, refusalLimit))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	if err != nil {
		return ""
	}
	status := metav1.Status{}
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return shortened(string(body))
}

// shortened returns the beginning of a text, without a last word of which only a part is left: that of a credential could not be recognized.
func shortened(text string) string {
	if len(text) <= bodyLimit {
		return text
	}
	return strings.TrimRightFunc(text[:bodyLimit], func(char rune) bool {
		return unicode.IsLetter(char) || unicode.IsDigit(char) || strings.ContainsRune("._~+/=%-", char)
	})
}
