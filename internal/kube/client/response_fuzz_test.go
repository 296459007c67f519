package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

// FuzzResponse returns arbitrary responses from a server: a client must report an error or return the requested object.
func FuzzResponse(f *testing.F) {
	object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			t.Skip("Go's HTTP client does not pass it on as a response")
		}
		client, err := New(&rest.Config{Host: "http://server.invalid", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
				Body: io.NopCloser(bytes.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1,
			}, nil
		})}, NewGuard("dcb2c4d5f6"))
		if err != nil {
			t.Fatal(err)
		}
		read := Request{Method: http.MethodGet, Path: configMaps.path() + "/c", Object: configMaps.referenceTo(object)}
		if response := client.SendOnce(t.Context(), read); response.Err == nil && (response.Object == nil || response.Object.GetKind() != "ConfigMap") {
			t.Errorf("a success without the object: %d %q", status, body)
		}
		list := client.SendOnce(t.Context(), Request{Method: http.MethodGet, Path: configMaps.path(), Object: configMaps.reference()})
		_, _ = list.Message(), list.Authoritative()
		if objects, _, page := list.page(); page.Err == nil {
			for _, one := range objects {
				if one == nil {
					t.Errorf("a list of nothing: %q", body)
				}
			}
		}
		if status < http.StatusBadRequest { // refusals may be retried after pauses that would slow down the fuzzer
			watched(t.Context(), client)
		}
	})
}

// watched reads a watch until it ends.
func watched(ctx context.Context, client *Client) {
	events, response := client.Watch(ctx, configMaps, metav1.ListOptions{})
	if response.Err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		_ = event.Object
	}
}
