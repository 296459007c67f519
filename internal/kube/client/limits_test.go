package client

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// connect returns a client of a server, with a token.
func connect(t *testing.T, server *httptest.Server) *Client {
	t.Helper()
	connected, err := New(&rest.Config{Host: server.URL, BearerToken: "hunter2"}, NewGuard("dcb2c4d5f6"))
	if err != nil {
		t.Fatal(err)
	}
	return connected
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func TestLimits_EndlessResponse(t *testing.T) {
	g := NewWithT(t)
	var written atomic.Int64
	server := serve(t, func(writer http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte("a"), 1<<20)
		_, _ = writer.Write([]byte(`{"kind":"`))
		for written.Load() < 1<<30 {
			n, err := writer.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	response := connect(t, server).SendOnce(t.Context(), Request{Method: http.MethodGet, Path: "/version"})
	g.Expect(response.Err).To(MatchError(ContainSubstring("response exceeds the 16 MiB limit")))
	g.Expect(response.Object).To(BeNil())
	g.Expect(written.Load()).To(BeNumerically("<", 64<<20), "nobody reads on")
}

func TestLimits_ResponseSize(t *testing.T) {
	g := NewWithT(t)
	const limit = 1 << 10
	size := limit
	server := serve(t, func(writer http.ResponseWriter, _ *http.Request) { _, _ = writer.Write(make([]byte, size)) })
	client := &http.Client{Transport: limited(http.DefaultTransport, limit, time.Minute)}
	read := func() ([]byte, error) {
		response, err := client.Get(server.URL)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = response.Body.Close() }()
		return io.ReadAll(response.Body)
	}
	g.Expect(read()).To(HaveLen(limit))
	size++
	_, err := read()
	g.Expect(err).To(MatchError(ContainSubstring("exceeds the")))
}

func TestLimits_ResponseTime(t *testing.T) {
	for _, begins := range []bool{false, true} {
		g := NewWithT(t)
		server := serve(t, func(writer http.ResponseWriter, request *http.Request) {
			if begins {
				_, _ = writer.Write([]byte(`{"kind":`))
				_ = http.NewResponseController(writer).Flush()
			}
			<-request.Context().Done()
		})
		client := &http.Client{Transport: limited(http.DefaultTransport, responseLimit, 500*time.Millisecond)}
		response, err := client.Get(server.URL)
		if begins {
			g.Expect(err).NotTo(HaveOccurred())
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		g.Expect(err).To(MatchError(ContainSubstring("no complete response within 500ms")))
	}
}

func TestWatch_Resumed(t *testing.T) {
	for address, want := range map[string]bool{
		"/api/v1/pods?watch=true": true, "/api/v1/pods?watch=1": true, "/api/v1/pods?watch=false": false, "/api/v1/pods": false,
		"/api/v1/namespaces/a/pods/b/log?follow=true": true,
	} {
		if got := streams(httptest.NewRequest(http.MethodGet, address, nil)); got != want {
			t.Errorf("%s: want %v, got %v", address, want, got)
		}
	}
}

func TestRedirects_Refused(t *testing.T) {
	for _, test := range []struct {
		name     string
		location func(other, itself string) string
		want     string
	}{
		{"another server", func(other, _ string) string { return other + "/version" }, "the server redirects to another server, http://127.0.0.1:"},
		{"another way of speaking", func(_, itself string) string { return "ftp" + itself[len("http"):] }, "redirects to another server, ftp://"},
		{"another path", func(string, string) string { return "/elsewhere" }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var requests atomic.Int32
			other := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
			var server *httptest.Server
			server = serve(t, func(writer http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/elsewhere" {
					_, _ = writer.Write([]byte(`{"gitVersion":"v1.36.3"}`))
					return
				}
				http.Redirect(writer, request, test.location(other.URL, server.URL), http.StatusTemporaryRedirect)
			})
			response := connect(t, server).SendOnce(t.Context(), Request{Method: http.MethodGet, Path: "/version"})
			g.Expect(requests.Load()).To(BeZero(), "not one request")
			if test.want == "" {
				g.Expect(response.Err).NotTo(HaveOccurred())
				return
			}
			g.Expect(response.Err).To(MatchError(And(ContainSubstring(test.want), Not(ContainSubstring("hunter2")))))
		})
	}
}

func TestRenewing_RotatedToken(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "token")
	rotate := func(token string) { g.Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed()) }
	rotate("old")
	valid := "old"
	var bodies []string
	server := serve(t, func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		if request.Header.Get("Authorization") != "Bearer "+valid {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		bodies = append(bodies, string(body))
	})
	client, err := New(&rest.Config{Host: server.URL, BearerTokenFile: file}, NewGuard("dcb2c4d5f6"))
	g.Expect(err).NotTo(HaveOccurred())
	post := Request{Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/tokenreviews", Body: []byte("{}")}
	g.Expect(client.SendOnce(t.Context(), post).Err).NotTo(HaveOccurred())
	valid = "new"
	rotate("new")
	g.Expect(client.SendOnce(t.Context(), post).Err).NotTo(HaveOccurred(), "it is sent again with the new one")
	g.Expect(bodies).To(Equal([]string{"{}", "{}"}))

	valid = "another"
	response := client.SendOnce(t.Context(), post)
	g.Expect(response.StatusCode).To(Equal(http.StatusUnauthorized))
	g.Expect(response.Authoritative()).To(BeFalse(), "that is no word about the request")
}
