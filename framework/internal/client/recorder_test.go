package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// record sends one request through a recorder to a handler, and returns what was noted and what the caller got.
func record(t *testing.T, verb, path, body string, handler http.HandlerFunc) (v1alpha1.Request, string) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(handler)
	defer server.Close()
	recorder := &recorder{}
	client := http.Client{Transport: recorder.around(http.DefaultTransport)}
	sent, err := http.NewRequestWithContext(t.Context(), verb, server.URL+path, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	sent.Header.Set("Authorization", "Bearer hunter2")

	answer, err := client.Do(sent)
	g.Expect(err).NotTo(HaveOccurred())
	read, err := io.ReadAll(answer.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())

	taken := recorder.take()
	g.Expect(taken).To(HaveLen(1))
	g.Expect(recorder.take()).To(BeEmpty(), "what was handed out is not kept")
	return taken[0], string(read)
}

func answering(status int, body string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Add("Warning", `299 - "look out"`)
		writer.WriteHeader(status)
		_, _ = io.WriteString(writer, body)
	}
}

func TestRecorderNotesARequestAndItsAnswer(t *testing.T) {
	g := NewWithT(t)
	request, read := record(t, http.MethodDelete, "/api/v1/namespaces/n/configmaps/c?dryRun=All", `{"kind":"DeleteOptions"}`,
		answering(http.StatusOK, `{"kind":"Status"}`))

	g.Expect(read).To(Equal(`{"kind":"Status"}`))
	g.Expect(request.Verb).To(Equal("DELETE"))
	g.Expect(request.Path).To(Equal("/api/v1/namespaces/n/configmaps/c?dryRun=All"))
	g.Expect(request.Body).To(Equal(`{"kind":"DeleteOptions"}`))
	g.Expect(request.Status).To(Equal(200))
	g.Expect(request.Latency).To(BeNumerically(">", 0))
	g.Expect(request.Warnings).To(Equal([]string{"look out"}), "the texts, as documented")
	g.Expect(request.Refusal).To(BeEmpty())
	g.Expect(request.Error).To(BeEmpty())
}

func TestRecorderNotesRefusalsAndLeavesTheAnswerReadable(t *testing.T) {
	long := strings.Repeat("x", 3*bodyLimit)
	for _, test := range []struct{ name, body, want string }{
		{"a Status", `{"kind":"Status","message":"the server is not in the mood"}`, "the server is not in the mood"},
		{"a text", "upstream connect error", "upstream connect error"},
		{"a Status without a message", `{"kind":"Status"}`, `{"kind":"Status"}`},
		{"nothing", "", ""},
		{"a long page", long, long[:bodyLimit]},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			request, read := record(t, http.MethodPost, "/api", "{}", answering(http.StatusConflict, test.body))
			g.Expect(read).To(Equal(test.body))
			g.Expect(request.Status).To(Equal(http.StatusConflict))
			g.Expect(request.Refusal).To(Equal(test.want))
		})
	}
}

func TestRecorderKeepsNoSecrets(t *testing.T) {
	for _, path := range []string{"/api/v1/namespaces/n/secrets", "/api/v1/namespaces/n/secrets/s"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			var sent string
			request, _ := record(t, http.MethodPost, path, `{"kind":"Secret","stringData":{"password":"hunter2"}}`,
				func(_ http.ResponseWriter, request *http.Request) {
					content, _ := io.ReadAll(request.Body)
					sent = string(content)
				})
			g.Expect(sent).To(ContainSubstring("hunter2"), "the server gets what the recorder does not keep")
			g.Expect(request.Body).To(BeEmpty())
			g.Expect(request.Path).To(Equal(path))
		})
	}
}

func TestRecorderKeepsTheBeginningOfLongBodies(t *testing.T) {
	body := strings.Repeat("y", 3*bodyLimit)
	request, _ := record(t, http.MethodPost, "/api", body, answering(http.StatusOK, ""))
	NewWithT(t).Expect(request.Body).To(Equal(body[:bodyLimit]))
}

func TestRecorderNotesThatNoAnswerCame(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	recorder := &recorder{}
	client := http.Client{Transport: recorder.around(http.DefaultTransport)}
	sent, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version", nil)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.Do(sent) //nolint:bodyclose // there is none
	g.Expect(err).To(HaveOccurred())

	taken := recorder.take()
	g.Expect(taken).To(HaveLen(1))
	g.Expect(taken[0].Status).To(BeZero())
	g.Expect(taken[0].Error).To(ContainSubstring("connection refused"))
}
