package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// record sends one request through a recorder to a handler, and returns the recorded request and the response.
func record(t *testing.T, verb, path, body string, handler http.HandlerFunc) (v1alpha1.Request, string) {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewServer(handler)
	defer server.Close()
	recorder := &Recorder{}
	client := http.Client{Transport: recorder.Wrap(http.DefaultTransport)}
	sent, err := http.NewRequestWithContext(t.Context(), verb, server.URL+path, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	sent.Header.Set("Authorization", "Bearer hunter2")

	response, err := client.Do(sent)
	g.Expect(err).NotTo(HaveOccurred())
	read, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())

	taken := recorder.Take()
	g.Expect(taken).To(HaveLen(1))
	g.Expect(recorder.Take()).To(BeEmpty(), "what was handed out is not kept")
	return taken[0], string(read)
}

func TestRecorder(t *testing.T) {
	g := NewWithT(t)
	request, read := record(t, http.MethodDelete, "/api/v1/namespaces/dcb2c4d5f6-1/configmaps/c?dryRun=All", `{"kind":"DeleteOptions"}`,
		answering(http.StatusOK, `{"kind":"Status"}`))

	g.Expect(read).To(Equal(`{"kind":"Status"}`))
	g.Expect(request.Verb).To(Equal("DELETE"))
	g.Expect(request.Path).To(Equal("/api/v1/namespaces/dcb2c4d5f6-1/configmaps/c?dryRun=All"))
	g.Expect(request.Body).To(Equal(`{"kind":"DeleteOptions"}`))
	g.Expect(request.Status).To(Equal(200))
	g.Expect(request.Latency).To(BeNumerically(">", 0))
	g.Expect(request.Warnings).To(Equal([]string{"look out"}), "the texts, as documented")
	g.Expect(request.Refusal).To(BeEmpty())
	g.Expect(request.Error).To(BeEmpty())
}

func TestRecorder_Refusal(t *testing.T) {
	long := strings.Repeat("one page of 19 bytes", bodyLimit)
	for _, test := range []struct{ name, body, want string }{
		{"a Status", `{"kind":"Status","message":"the server is not in the mood"}`, "the server is not in the mood"},
		{"a text", "upstream connect error", "upstream connect error"},
		{"a Status without a message", `{"kind":"Status"}`, `{"kind":"Status"}`},
		{"nothing", "", ""},
		{"a long page, to the last whole word", long, long[:bodyLimit-len("b")]},
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

// recorded returns what a recorder records of a client's request to a handler.
func recorded(t *testing.T, handler http.HandlerFunc, send func(*Client) Response) v1alpha1.Request {
	t.Helper()
	g := NewWithT(t)
	client, _ := asking(t, handler)
	recorder := &Recorder{}
	client, err := client.Recorded(recorder)
	g.Expect(err).NotTo(HaveOccurred())
	send(client)
	taken := recorder.Take()
	g.Expect(taken).To(HaveLen(1))
	return taken[0]
}

func TestRecorder_Object(t *testing.T) {
	live, canary := in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
	live.SetUID("known")
	canary.SetLabels(map[string]string{CanaryLabel: "true"})
	const stored = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"given"}}`
	const status = `{"apiVersion":"v1","kind":"Status","metadata":{},"details":{"name":"c","uid":"other"}}`
	configMap := v1alpha1.ObjectReference{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespace: "dcb2c4d5f6-1", Name: "c"}
	with := func(change func(*v1alpha1.ObjectReference)) v1alpha1.ObjectReference {
		changed := configMap
		change(&changed)
		return changed
	}
	for _, test := range []struct {
		name, response string
		send           func(*Client) Response
		want           v1alpha1.ObjectReference
	}{
		{
			"a create learns the uid", stored,
			func(c *Client) Response { return c.Create(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))) },
			with(func(o *v1alpha1.ObjectReference) { o.UID = "given" }),
		},
		{
			"a create of a generated name learns that, too", stored,
			func(c *Client) Response { return c.Create(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap(""))) },
			with(func(o *v1alpha1.ObjectReference) { o.UID = "given" }),
		},
		{
			"a delete knows the uid", status,
			func(c *Client) Response { return c.Delete(t.Context(), live, metav1.DeleteOptions{}) },
			with(func(o *v1alpha1.ObjectReference) { o.UID = "known" }),
		},
		{
			"a canary", `{"apiVersion":"v1","kind":"ConfigMap"}`,
			func(c *Client) Response { return c.Get(t.Context(), canary) },
			with(func(o *v1alpha1.ObjectReference) { o.Canary = true }),
		},
		{
			"a collection", `{"apiVersion":"v1","kind":"ConfigMapList","items":[]}`,
			func(c *Client) Response { return c.Send(t.Context(), listOf(configMaps)) },
			with(func(o *v1alpha1.ObjectReference) { o.Name = "" }),
		},
		{
			"of a group, at the cluster scope", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"}`,
			func(c *Client) Response { return c.Get(t.Context(), fixtures.CustomResourceDefinition("example.io")) },
			v1alpha1.ObjectReference{
				Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
				Kind: "CustomResourceDefinition", Name: "things.example.io",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := recorded(t, answering(http.StatusOK, test.response), test.send)
			NewWithT(t).Expect(request.Object).To(HaveValue(Equal(test.want)))
		})
	}
}

func TestRecorder_Subresource(t *testing.T) {
	g := NewWithT(t)
	request := recorded(t, answering(http.StatusOK, ""), func(c *Client) Response {
		return c.Update(t.Context(), in("dcb2c4d5f6-1", fixtures.UnscheduledPod("p")), "status")
	})
	g.Expect(request.Subresource).To(Equal("status"))
	g.Expect(request.Object.Name).To(Equal("p"))
	g.Expect(request.Path).To(Equal("/api/v1/namespaces/dcb2c4d5f6-1/pods/p/status"))
}

func TestRecorder_Secrets(t *testing.T) {
	secret := in("dcb2c4d5f6-1", fixtures.Secret("s"))
	secret.Object["stringData"] = map[string]any{"password": "hunter2"}
	for _, test := range []struct {
		name string
		send func(*Client) Response
	}{
		{"created", func(c *Client) Response { return c.Create(t.Context(), secret) }},
		{"updated", func(c *Client) Response { return c.Update(t.Context(), secret, "") }},
		{"patched", func(c *Client) Response {
			return c.Patch(t.Context(), secret, types.MergePatchType, map[string]any{"stringData": secret.Object["stringData"]}, "")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var sent string
			request := recorded(t, func(writer http.ResponseWriter, request *http.Request) {
				content, _ := io.ReadAll(request.Body)
				sent = string(content)
				_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)
			}, test.send)
			g.Expect(sent).To(ContainSubstring("hunter2"), "the server gets what the recorder does not keep")
			g.Expect(request.Body).To(BeEmpty())
			g.Expect(request.Object.Resource).To(Equal("secrets"), "who was written is no secret")
			g.Expect(request.Object.Name).To(Equal("s"))
		})
	}
}

func TestRecorder_Tokens(t *testing.T) {
	review := &Object{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]any{"token": "hunter2"},
	}}
	for _, test := range []struct {
		name string
		send func(*Client) Response
	}{
		{"shown for a review", func(c *Client) Response { return c.Create(t.Context(), review) }},
		{"given out", func(c *Client) Response {
			return c.Do(t.Context(), in("dcb2c4d5f6-1", fixtures.ServiceAccount()), Request{
				Method: http.MethodPost, Subresource: "token", Body: map[string]any{"kind": "TokenRequest"},
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var response Response
			request := recorded(t, answering(http.StatusCreated, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"token":"hunter2"}}`),
				func(c *Client) Response {
					response = test.send(c)
					return response
				})
			g.Expect(string(response.Body)).To(ContainSubstring("hunter2"), "the caller gets what the recorder does not keep")
			g.Expect(request.Status).To(Equal(http.StatusCreated))
			g.Expect(fmt.Sprintf("%+v", request)).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestRecorder_LongBodies(t *testing.T) {
	body := strings.Repeat("y", 3*bodyLimit)
	request, _ := record(t, http.MethodPost, "/api", body, answering(http.StatusOK, ""))
	NewWithT(t).Expect(request.Body).To(Equal(body[:bodyLimit]))
}

func TestRecorder_NoResponse(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	recorder := &Recorder{}
	client := http.Client{Transport: recorder.Wrap(http.DefaultTransport)}
	sent, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/version", nil)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.Do(sent) //nolint:bodyclose // there is none
	g.Expect(err).To(HaveOccurred())

	taken := recorder.Take()
	g.Expect(taken).To(HaveLen(1))
	g.Expect(taken[0].Status).To(BeZero())
	g.Expect(taken[0].Error).To(ContainSubstring("connection refused"))
}

func TestRecorder_Traceparent(t *testing.T) {
	g := NewWithT(t)
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		received = append(received, request.Header.Get("traceparent"))
	}))
	defer server.Close()
	send := func(recorder *Recorder) v1alpha1.Request {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := (&http.Client{Transport: recorder.Wrap(http.DefaultTransport)}).Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(request.Header).To(BeEmpty(), "the caller's request is not changed")
		return recorder.Take()[0]
	}
	traced := &Recorder{Trace: trace.TraceID{15: 1}}

	g.Expect(send(&Recorder{}).SpanID).To(BeEmpty())
	first, second := send(traced).SpanID, send(traced).SpanID

	g.Expect(first).NotTo(Equal(second))
	g.Expect(received).To(Equal([]string{
		"", "00-00000000000000000000000000000001-" + first + "-01", "00-00000000000000000000000000000001-" + second + "-01",
	}))
}
