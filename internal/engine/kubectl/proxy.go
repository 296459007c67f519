package kubectl

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/certificates"
)

// proxy forwards requests to the API server with the credentials of the run. Every process on this machine can reach it, so it requires the
// token of a running command. It requires TLS, so that a token does not reach another process that listens on the port later.
type proxy struct {
	url      string
	caBundle []byte
	server   *http.Server
	mapper   *client.Client
	// objects forwards requests for objects, which the recorder of the spec records; others forwards discovery.
	objects, others http.Handler

	mu sync.Mutex
	// logs are those of the running commands, by token.
	logs map[string]*requestLog
}

// loopback is the only address that the proxy listens on.
var loopback = net.IPv4(127, 0, 0, 1)

// headerTimeout limits how long kubectl may take to send the headers of a request.
const headerTimeout = 30 * time.Second

// startProxy starts a proxy that uses the recorded client for objects and the harness's client for discovery.
func startProxy(recorded, harness *client.Client) (*proxy, error) {
	p := &proxy{mapper: harness, logs: map[string]*requestLog{}}
	var err error
	if p.objects, err = passOn(recorded); err == nil {
		p.others, err = passOn(harness)
	}
	if err != nil {
		return nil, err
	}
	certificate, caBundle, err := certificates.ForServer(loopback.String())
	if err != nil {
		return nil, fmt.Errorf("serve kubectl's proxy: %w", err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback.String(), "0"), &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		return nil, fmt.Errorf("listen for kubectl: %w", err)
	}
	p.url, p.caBundle = "https://"+listener.Addr().String(), caBundle
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// passOn returns a handler that forwards requests to the client's server. It removes kubectl's Authorization header, which must not replace
// the credentials of the run.
func passOn(to *client.Client) (http.Handler, error) {
	transport, base, err := to.Transport()
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(base)
			request.Out.Header.Del("Authorization")
			if body, ok := request.In.Context().Value(bodyKey{}).([]byte); ok {
				request.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
			}
		},
		ModifyResponse: func(response *http.Response) error {
			if noted, ok := response.Request.Context().Value(notedKey{}).(*noted); ok {
				noted.answer(response.StatusCode, client.RefusalIn(response), nil)
			}
			return nil
		},
		ErrorHandler: func(writer http.ResponseWriter, request *http.Request, err error) {
			if noted, ok := request.Context().Value(notedKey{}).(*noted); ok && request.Context().Err() == nil {
				refusal := err
				if !client.IsNotOwned(err) {
					refusal = nil // a transport error, not a refusal
				}
				noted.answer(http.StatusBadGateway, "", refusal)
			}
			http.Error(writer, err.Error(), http.StatusBadGateway)
		},
	}, nil
}

type (
	// bodyKey is the context key of a request's body, for the recorder.
	bodyKey struct{}
	// notedKey is the context key of a request's log entry.
	notedKey struct{}
)

// ServeHTTP forwards a request of a running command when its gate permits that.
func (p *proxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	requests := p.logOf(request)
	if requests == nil {
		http.Error(writer, "only commands of the run may use this proxy", http.StatusUnauthorized)
		return
	}
	http.StripPrefix(requests.gate.Prefix, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		p.forward(requests, writer, request)
	})).ServeHTTP(writer, request)
}

// forward forwards a request of a command, whose path is one of the API server.
func (p *proxy) forward(requests *requestLog, writer http.ResponseWriter, request *http.Request) {
	about := p.mapper.RequestFor(request.Method, request.URL.Path)
	if about.Object == nil {
		p.others.ServeHTTP(writer, request)
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	ctx := client.Proxied(context.WithValue(request.Context(), bodyKey{}, body), about)
	noted := requests.note(newRequest(about, request.URL.Query(), body))
	if err := requests.gate.pass(ctx, noted.request); err != nil {
		// The log has no status code for it, because it is no answer of the server. If kubectl has ended, none arrives.
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	p.objects.ServeHTTP(writer, request.WithContext(context.WithValue(ctx, notedKey{}, noted)))
}

// admit returns a token for a command. It is valid until it is dismissed.
func (p *proxy) admit(requests *requestLog) (token string) {
	token = rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs[token] = requests
	return token
}

func (p *proxy) dismiss(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.logs, token)
}

// logOf returns the log of the command that sent a request; nil if the token is not valid. A token has 128 random bits, so the timing of
// the lookup does not help to guess one.
func (p *proxy) logOf(request *http.Request) *requestLog {
	token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs[token]
}

func (p *proxy) close() { _ = p.server.Close() }
