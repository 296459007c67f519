// Package faults puts a proxy in front of an API server that behaves as bad networks, proxies and servers do: it is slow,
// turns requests away, breaks connections, loses responses after the server has acted, and ends watches early.
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

// Faults are what the proxy injects.
type Faults struct {
	// Seed draws the same faults again, as far as requests come in the same order.
	Seed uint64
	// Latency is added to each request.
	Latency time.Duration
	// Refused is the share of requests that never reach the server: a quarter each is answered with 429, 500 and 503,
	// the last two by a page of HTML, and has its connection broken. Lost is the share of those whose response is lost
	// although the server has acted.
	Refused, Lost float64
	// WatchFrom and WatchTo bound how long a watch lives; it lives on where they are zero.
	WatchFrom, WatchTo time.Duration
	// PerSecond is how many requests are let through in a second, one after the other; all of them where it is zero.
	PerSecond int
}

// All are faults of every kind at once.
func All(seed uint64) Faults {
	return Faults{
		Seed: seed, Latency: 50 * time.Millisecond, Refused: 0.05, Lost: 0.02, WatchFrom: time.Second, WatchTo: 4 * time.Second,
	}
}

// Proxy is a server that passes on requests, with credentials of its own, through faults.
type Proxy struct {
	Faults
	next *httputil.ReverseProxy

	mu     sync.Mutex
	random *rand.Rand
	// free is when the next request is let through.
	free time.Time
	// seen counts requests by what became of them.
	seen map[string]int
}

// New makes a proxy in front of a server.
func New(config *rest.Config, injected Faults) (*Proxy, error) {
	forward, err := Forward(config)
	if err != nil {
		return nil, err
	}
	return &Proxy{
		Faults: injected, next: forward, seen: map[string]int{},
		random: rand.New(rand.NewPCG(injected.Seed, injected.Seed)), //nolint:gosec // it is to be the same again
	}, nil
}

// Forward passes requests on to a server with the credentials of its configuration. When the connection to the server breaks, so does the
// one to the client.
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
			request.Out.Header.Del("Authorization") // the transport has the credentials
		},
	}, nil
}

// fate is what becomes of a request.
type fate string

const (
	passed    fate = "passed on"
	throttled fate = "answered 429"
	failed    fate = "answered 500"
	down      fate = "answered 503"
	reset     fate = "reset"
	lost      fate = "response lost"
)

// draw decides on a request, and how long it lives if it is a watch.
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

// Seen says how many requests had which fate.
func (p *Proxy) Seen() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]int{}
	for what, count := range p.seen {
		seen[what] = count
	}
	return seen
}

// ServeHTTP lets a request have its fate.
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

// slow lets a request wait. It is false when nobody waits for it any more.
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

// queue says how long it takes until a request is let through after those before it.
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

// discarding takes a response that nobody gets.
type discarding struct {
	header http.Header
	body   bytes.Buffer
}

func (d *discarding) Header() http.Header               { return d.header }
func (d *discarding) Write(content []byte) (int, error) { return d.body.Write(content) }
func (d *discarding) WriteHeader(int)                   {}
