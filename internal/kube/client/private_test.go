package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRecorder_PrivateValues(t *testing.T) {
	private := NewPrivate(
		map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "labels": map[string]any{"tier": "gold"}},
			"spec": map[string]any{"password": "hunter2", "pin": 4711, "nested": []any{map[string]any{"on": true, "key": "k\"1"}}}, "top": "level",
		},
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{"vault": "s.abc"}}},
		nil,
	)
	for _, test := range []struct{ name, body, want string }{
		{
			"an object", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"own":"x","vault":"s.abc"},"finalizers":["gold"],"labels":{"tier":"gold","w":"w"},"name":"w-x7"},"spec":{"nested":[{"key":"k\"1","on":true}],"password":"hunter2","pin":4711,"replicas":3},"top":"level"}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"own":"x","vault":"(redacted)"},"finalizers":["gold"],"labels":{"tier":"(redacted)","w":"w"},"name":"w-x7"},"spec":{"nested":[{"key":"(redacted)","on":true}],"password":"(redacted)","pin":"(redacted)","replicas":3},"top":"(redacted)"}`,
		},
		{"a template", `{"spec":{"template":{"metadata":{"annotations":{"vault":"s.abc"}}}}}`, `{"spec":{"template":{"metadata":{"annotations":{"vault":"(redacted)"}}}}}`},
		{
			"a copy in an annotation", `{"metadata":{"annotations":{"last-applied":"{\"spec\":{\"password\":\"hunter2\"}}"}}}`,
			`{"metadata":{"annotations":{"last-applied":"{\"spec\":{\"password\":\"(redacted)\"}}"}}}`,
		},
		{
			"a JSON patch", `[{"op":"add","path":"/spec/password","value":"hunter2"},{"op":"add","path":"/metadata/finalizers/-","value":"gold"}]`,
			`[{"op":"add","path":"/spec/password","value":"(redacted)"},{"op":"add","path":"/metadata/finalizers/-","value":"gold"}]`,
		},
		{"delete options", `{"gracePeriodSeconds":4711,"kind":"DeleteOptions","preconditions":{"uid":"gold"}}`, `{"gracePeriodSeconds":4711,"kind":"DeleteOptions","preconditions":{"uid":"gold"}}`},
		{"an eviction", `{"deleteOptions":{"gracePeriodSeconds":4711},"kind":"Eviction"}`, `{"deleteOptions":{"gracePeriodSeconds":4711},"kind":"Eviction"}`},
		{"nothing of the user's, as it was sent", `{ "spec": {"a":1.50} }`, `{ "spec": {"a":1.50} }`},
		{"another encoding", "spec: {password: hunter2}", "(redacted)"},
		{"no body", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(answering(http.StatusOK, "{}"))
			defer server.Close()
			recorder := &Recorder{Private: private}
			sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(test.body))
			g.Expect(err).NotTo(HaveOccurred())
			response, err := (&http.Client{Transport: recorder.Wrap(http.DefaultTransport)}).Do(sent)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(recorder.Take()[0].Body).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(string(NewPrivate(nil, map[string]any{}).without([]byte("as: it was")))).To(Equal("as: it was"))
}
