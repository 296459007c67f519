// Package faults is a proxy in front of an API server that behaves like bad networks, proxies and servers: it is slow, rejects requests,
// breaks connections, drops responses after the server has acted, and ends watches early. Hiding makes it lack what other servers do not have.
package faults

import (
	"bytes"
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Faults configure the proxy.
type Faults struct {
	// Seed reproduces the faults, as far as requests arrive in the same order.
	Seed uint64
	// Latency is added to each request.
	Latency time.Duration
	// Refused is the share of requests that do not reach the server: a quarter each gets 429, 500 and 503, the last two with an HTML page,
	// and a broken connection. Lost is the share of requests whose response is dropped although the server has acted.
	Refused, Lost float64
	// WatchFrom and WatchTo limit the duration of a watch; zero means no limit.
	WatchFrom, WatchTo time.Duration
	// PerSecond limits the requests per second, in order; zero means no limit.
	PerSecond int
}

// All returns faults of every kind.
func All(seed uint64) Faults {
	return Faults{
		Seed: seed, Latency: 50 * time.Millisecond, Refused: 0.05, Lost: 0.02, WatchFrom: time.Second, WatchTo: 4 * time.Second,
	}
}

// Proxy is a server that forwards requests with its own credentials and injects faults.
type Proxy struct {
	Faults
	next *httputil.ReverseProxy

	mu     sync.Mutex
	random *rand.Rand
	// free is when the next request may be forwarded.
	free time.Time
	// seen counts requests by fate.
	seen map[string]int
}

// New returns a proxy for a server.
func New(config *rest.Config, injected Faults) (*Proxy, error) {
	forward, err := Forward(config)
	if err != nil {
		return nil, err
	}
	return &Proxy{
		Faults: injected, next: forward, seen: map[string]int{},
		random: rand.New(rand.NewPCG(injected.Seed, injected.Seed)), //nolint:gosec // it must be reproducible
	}, nil
}

// Forward returns a handler that forwards requests to a server with the credentials of its configuration. When the connection to the server
// breaks, it breaks the one to the client.
func Forward(config *rest.Config) (*httputil.ReverseProxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(base)
			request.Out.Header.Del("Authorization") // the transport adds the credentials
		},
	}, nil
}

// fate is the result of a request.
type fate string

const (
	passed    fate = "passed on"
	throttled fate = "answered 429"
	failed    fate = "answered 500"
	down      fate = "answered 503"
	reset     fate = "reset"
	lost      fate = "response lost"
)

// draw decides on a request, and on its duration if it is a watch.
func (p *Proxy) draw() (what fate, lives time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	refusals := []fate{throttled, failed, down, reset}
	number, which := p.random.Float64(), refusals[p.random.IntN(len(refusals))]
	lives = p.WatchFrom + time.Duration(p.random.Float64()*float64(p.WatchTo-p.WatchFrom))
	switch {
	case number < p.Refused:
		what = which
	case number < p.Refused+p.Lost:
		what = lost
	default:
		what = passed
	}
	p.seen[string(what)]++
	return what, lives
}

// Seen returns the number of requests by fate.
func (p *Proxy) Seen() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]int{}
	for what, count := range p.seen {
		seen[what] = count
	}
	return seen
}

// ServeHTTP handles a request according to its fate.
func (p *Proxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if !p.slow(request.Context()) {
		return
	}
	const page = "<html><head><title>Oops</title></head><body><h1>Something between you and the server failed</h1></body></html>"
	answer := func(status int) {
		writer.Header().Set("Content-Type", "text/html")
		writer.WriteHeader(status)
		_, _ = io.WriteString(writer, page)
	}
	what, lives := p.draw()
	watches := request.URL.Query().Has("watch")
	switch {
	case what == throttled:
		http.Error(writer, "too many requests", http.StatusTooManyRequests)
	case what == failed:
		answer(http.StatusInternalServerError)
	case what == down:
		answer(http.StatusServiceUnavailable)
	case what == reset:
		panic(http.ErrAbortHandler)
	case what == lost && !watches:
		p.next.ServeHTTP(&discarding{header: http.Header{}}, request)
		panic(http.ErrAbortHandler)
	case watches && lives > 0:
		ctx, end := context.WithTimeout(request.Context(), lives)
		defer end()
		p.next.ServeHTTP(writer, request.WithContext(ctx))
	default:
		p.next.ServeHTTP(writer, request)
	}
}

// slow delays a request. It is false when the client has disconnected.
func (p *Proxy) slow(ctx context.Context) bool {
	timer := time.NewTimer(p.Latency + p.queue())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// queue returns the delay of a request after earlier ones.
func (p *Proxy) queue() time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Second / time.Duration(p.PerSecond))
	return p.free.Sub(now)
}

// discarding receives a response that is dropped.
type discarding struct {
	header http.Header
	body   bytes.Buffer
}

func (d *discarding) Header() http.Header               { return d.header }
func (d *discarding) Write(content []byte) (int, error) { return d.body.Write(content) }
func (d *discarding) WriteHeader(int)                   {}
