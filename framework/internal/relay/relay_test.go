package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

const token = "7f3a"

// startRelay starts a relay and an API server's pod proxy, and returns the address of the relay and a client of the proxy.
func startRelay(t *testing.T) (string, *client.Client) {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- Serve(ctx, address, token) }()
	t.Cleanup(func() {
		stop()
		g.Expect(<-ended).NotTo(HaveOccurred())
	})
	g.Eventually(func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}).Should(Succeed())
	prefix := fmt.Sprintf("/api/v1/namespaces/dcb2c4d5f6-1/pods/https:webhook-relay:%d/proxy", Port)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(&url.URL{Scheme: "https", Host: address})
			request.Out.URL.Path = strings.TrimPrefix(request.In.URL.Path, prefix)
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	with, err := client.New(&rest.Config{Host: server.URL}, client.NewGuard("dcb2c4d5f6"))
	g.Expect(err).NotTo(HaveOccurred())
	return address, with
}

// pod is the pod of the relay.
var pod = Pod{Namespace: "dcb2c4d5f6-1", Name: "webhook-relay", Token: token}

// serve serves requests for a host name through the relay.
func serve(t *testing.T, with *client.Client, name string, handler http.HandlerFunc) *Server {
	t.Helper()
	server, err := StartAs(t.Context(), with, pod, name, handler)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// call calls a host at the relay, as an API server does.
func call(ctx context.Context, address, name string, bundle []byte, body string) (int, string, error) {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(bundle)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: name, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+name+"/review?timeout=10s", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

func TestRequestsOfAHostReachItsProcess(t *testing.T) {
	g := NewWithT(t)
	address, with := startRelay(t)
	servers := map[string]*Server{}
	for _, name := range []string{"a.run.svc", "b.run.svc"} {
		servers[name] = serve(t, with, name, func(response http.ResponseWriter, request *http.Request) {
			content, _ := io.ReadAll(request.Body)
			_, _ = fmt.Fprintf(response, "%s got %s at %s", name, content, request.URL)
		})
	}
	large := strings.Repeat("x", 1<<20)
	for name, server := range servers {
		for _, body := range []string{"one", large} {
			code, content, err := call(t.Context(), address, name, server.ClientConfig().CABundle, body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(code).To(Equal(http.StatusOK))
			g.Expect(content == name+" got "+body+" at /review?timeout=10s").To(BeTrue(), "%.100s", content)
		}
	}
}

func TestRequestsDoNotWaitForOneThatIsHeld(t *testing.T) {
	g := NewWithT(t)
	address, with := startRelay(t)
	held, gone := make(chan struct{}), make(chan struct{})
	server := serve(t, with, "a.run.svc", func(response http.ResponseWriter, request *http.Request) {
		if content, _ := io.ReadAll(request.Body); string(content) == "held" {
			close(held)
			<-request.Context().Done()
			close(gone)
			return
		}
		_, _ = response.Write([]byte("done"))
	})
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := call(ctx, address, "a.run.svc", server.ClientConfig().CABundle, "held")
		ended <- err
	}()
	g.Eventually(held).Should(BeClosed())
	_, content, err := call(t.Context(), address, "a.run.svc", server.ClientConfig().CABundle, "other")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(Equal("done"))
	giveUp()
	g.Expect(errors.Is(<-ended, context.Canceled)).To(BeTrue())
	g.Eventually(gone).Should(BeClosed(), "the process notices that the API server does not wait any longer")
}

func TestAHostIsCalledOnlyWhileItsProcessIsConnected(t *testing.T) {
	g := NewWithT(t)
	address, with := startRelay(t)
	server := serve(t, with, "a.run.svc", func(http.ResponseWriter, *http.Request) {})
	bundle := server.ClientConfig().CABundle
	g.Expect(server.Close()).To(Succeed())
	g.Eventually(func() error {
		_, _, err := call(t.Context(), address, "a.run.svc", bundle, "")
		return err
	}).Should(MatchError(ContainSubstring("certificate")), "the relay has no certificate of the host any longer")
}

func TestOnlyThoseWhoKnowTheTokenConnect(t *testing.T) {
	g := NewWithT(t)
	_, with := startRelay(t)
	stranger := pod
	stranger.Token = "guessed"
	_, err := StartAs(t.Context(), with, stranger, "a.run.svc", http.NotFoundHandler())
	g.Expect(err).To(MatchError(ContainSubstring(`connect to pod "webhook-relay" in namespace "dcb2c4d5f6-1" through the API server: the server responded 403 Forbidden: wrong token`)))
	_, err = StartAs(t.Context(), with, pod, "", http.NotFoundHandler())
	g.Expect(err).To(MatchError(ContainSubstring("no upgrade to deletion-conformance-relay for a host")))
}

func TestAnAddressInUseIsRefused(t *testing.T) {
	address, _ := startRelay(t)
	NewWithT(t).Expect(Serve(t.Context(), address, token)).To(MatchError(ContainSubstring("listen on " + address)))
}
