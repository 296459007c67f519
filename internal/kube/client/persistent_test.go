package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// fate is the result of one request: a response, or an error on the way. With cut set, the body of the response breaks off.
type fate struct {
	status int
	body   string
	cut    bool
	header http.Header
	err    error
}

// way is a RoundTripper that gives requests these fates in order, and records the requests.
type way struct {
	fates []fate
	sent  []string
}

func (w *way) RoundTrip(request *http.Request) (*http.Response, error) {
	body := ""
	if request.Body != nil {
		content, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		body = string(content)
	}
	w.sent = append(w.sent, strings.TrimSpace(request.Method+" "+body))
	next := w.fates[0]
	w.fates = w.fates[1:]
	if next.err != nil {
		return nil, next.err
	}
	var content io.Reader = strings.NewReader(next.body)
	if next.cut {
		content = io.MultiReader(content, failing{io.ErrUnexpectedEOF})
	}
	return &http.Response{StatusCode: next.status, Body: io.NopCloser(content), Header: next.header}, nil
}

// notReached is the error of a connection that could not be established.
var notReached = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

func TestPersistent(t *testing.T) {
	reset := errors.New("connection reset by peer")
	good := fate{status: http.StatusOK, body: "{}"}
	for _, test := range []struct {
		name, method, body string
		fates              []fate
		times              int
		status             int // 0 for an error
	}{
		{"a read whose connection breaks", http.MethodGet, "", []fate{{err: reset}, good}, 2, http.StatusOK},
		{"a read that breaks in the middle", http.MethodGet, "", []fate{{status: http.StatusOK, body: `{"kind":`, cut: true}, good}, 2, http.StatusOK},
		{"a read of a failing server", http.MethodGet, "", []fate{{status: http.StatusServiceUnavailable}, good}, 2, http.StatusOK},
		{"a read that is throttled", http.MethodGet, "", []fate{{status: http.StatusTooManyRequests}, good}, 2, http.StatusOK},
		{"a read that is refused", http.MethodGet, "", []fate{{status: http.StatusForbidden}}, 1, http.StatusForbidden},
		{"a write that never reached the server", http.MethodPost, "content", []fate{{err: notReached}, good}, 2, http.StatusOK},
		{"a write that is throttled", http.MethodPost, "content", []fate{{status: http.StatusTooManyRequests}, good}, 2, http.StatusOK},
		{"a write whose connection breaks", http.MethodDelete, "content", []fate{{err: reset}}, 1, 0},
		{"a write of a failing server", http.MethodDelete, "content", []fate{{status: http.StatusInternalServerError}}, 1, http.StatusInternalServerError},
		{"an eviction that a budget refuses", http.MethodPost, "content", []fate{{status: http.StatusTooManyRequests, body: budgetRefuses}}, 1, http.StatusTooManyRequests},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			sending := &way{fates: test.fates}
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://server/api", strings.NewReader(test.body))
			g.Expect(err).NotTo(HaveOccurred())

			response, err := persistent{sending}.RoundTrip(request)

			g.Expect(sending.sent).To(HaveLen(test.times))
			for _, sent := range sending.sent {
				g.Expect(sent).To(Equal(strings.TrimSpace(test.method+" "+test.body)), "each time the whole request")
			}
			if test.status == 0 {
				g.Expect(err).To(MatchError(reset))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			g.Expect(response.StatusCode).To(Equal(test.status))
			content, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(content)).To(Equal(test.fates[len(test.fates)-1].body), "the response can be read still")
		})
	}
}

func TestPersistent_BodyWithoutCopy(t *testing.T) {
	g := NewWithT(t)
	sending := &way{fates: []fate{{err: notReached}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server/api", io.NopCloser(strings.NewReader("content")))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = persistent{sending}.RoundTrip(request) //nolint:bodyclose // there is none
	g.Expect(err).To(MatchError(notReached))
	g.Expect(sending.sent).To(HaveLen(1))
}

func TestRetries_RetryAfter(t *testing.T) {
	g := NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/api", nil)
	g.Expect(err).NotTo(HaveOccurred())
	response := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3"}}, Body: http.NoBody}
	bears, after := retriesFor(request, response, nil)
	g.Expect(bears).To(Equal(throttledPatience))
	g.Expect(after).To(Equal(3 * time.Second))
}

func TestPersistent_DeadlineReason(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	reset := errors.New("connection reset by peer")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/api", nil)
	g.Expect(err).NotTo(HaveOccurred())
	sending := &way{fates: []fate{{err: reset}, {err: context.Canceled}}}
	_, err = persistent{stopping{sending, stop}}.RoundTrip(request) //nolint:bodyclose // there is none
	g.Expect(err).To(MatchError(reset))
}

// stopping is a way whose context ends when the second request is sent.
type stopping struct {
	*way
	stop context.CancelFunc
}

func (s stopping) RoundTrip(request *http.Request) (*http.Response, error) {
	if len(s.sent) == 1 {
		s.stop()
	}
	return s.way.RoundTrip(request)
}
