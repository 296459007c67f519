package kubectl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Request is a request that kubectl made for an object or a collection.
type Request struct {
	client.Request
	// Name is the name of the object; empty for a collection and for a create.
	Name string
	// Watch is set for a watch.
	Watch bool
	// Options are the delete options of a delete or an eviction; nil when the request has none.
	Options *metav1.DeleteOptions
	// StatusCode is the HTTP status code of the response; 0 until there is one.
	StatusCode int
	// Refusal is the server's message of a refusal.
	Refusal string
	// NotSent is why the request was not forwarded; nil when it was.
	NotSent error
}

// String describes the request and its status.
func (r Request) String() string {
	text := r.Method + " " + r.Path
	if len(r.Query) > 0 {
		text += "?" + r.Query.Encode()
	}
	return fmt.Sprintf("%s: %d", text, r.StatusCode)
}

func newRequest(about client.Request, query url.Values, body []byte) Request {
	about.Query = query
	request := Request{Request: about, Name: about.Object.Name, Watch: query.Get("watch") == "true" || query.Get("watch") == "1"}
	switch {
	case request.Method == http.MethodDelete:
		request.Options = optionsIn(body, corev1.SchemeGroupVersion.WithKind("DeleteOptions"))
	case request.Subresource == "eviction":
		request.Options = optionsIn(body, policyv1.SchemeGroupVersion.WithKind("Eviction"))
	}
	return request
}

// optionsIn decodes the delete options in a body of any encoding; nil when there are none. A body without a kind is decoded as the expected
// one.
func optionsIn(body []byte, should schema.GroupVersionKind) *metav1.DeleteOptions {
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &should, nil)
	if err != nil {
		return nil
	}
	switch decoded := decoded.(type) {
	case *metav1.DeleteOptions:
		return decoded
	case *policyv1.Eviction:
		return decoded.DeleteOptions
	case *policyv1beta1.Eviction:
		return decoded.DeleteOptions
	}
	return nil
}

// requestLog records the requests of a command.
type requestLog struct {
	gate *Gate

	mu    sync.Mutex
	noted []*noted
}

// noted is a request in a log.
type noted struct {
	log     *requestLog
	request Request
}

func (l *requestLog) note(request Request) *noted {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := &noted{log: l, request: request}
	l.noted = append(l.noted, entry)
	return entry
}

func (n *noted) answer(statusCode int, refusal string, notSent error) {
	n.log.mu.Lock()
	defer n.log.mu.Unlock()
	n.request.StatusCode, n.request.Refusal, n.request.NotSent = statusCode, refusal, notSent
}

// requests returns the requests so far, the oldest first.
func (l *requestLog) requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var requests []Request
	for _, entry := range l.noted {
		requests = append(requests, entry.request)
	}
	return slices.Clip(requests)
}

// Gate delays some requests of kubectl, and answers others with 500. The zero value passes all to the server.
type Gate struct {
	// Prefix is the path below which kubectl finds the API.
	Prefix string

	mu           sync.Mutex
	held, failed func(Request) bool
	opened       chan struct{}
}

// errFailed is the error of a request that Fail matches.
var errFailed = errors.New("this request fails, as the spec decided")

// Fail fails later requests that match, until Release.
func (g *Gate) Fail(fits func(Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = fits
}

// Delay delays later requests that match, until Release.
func (g *Gate) Delay(fits func(Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.opened = fits, make(chan struct{})
}

// Release releases the delayed requests, and passes all later ones.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.opened)
		g.held = nil
	}
	g.failed = nil
}

// pass returns when a request may be forwarded, or with an error when its context ends first or it is to fail.
func (g *Gate) pass(ctx context.Context, request Request) error {
	g.mu.Lock()
	held, failed, opened := g.held, g.failed, g.opened
	g.mu.Unlock()
	if failed != nil && failed(request) {
		return errFailed
	}
	if held == nil || !held(request) {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
