package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestOnlyTheServersOwnWordIsJudged(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		answer Answer
		want   bool
	}{
		{Answer{Status: http.StatusOK}, true},
		{Answer{Status: http.StatusForbidden, Err: refused}, true},
		{Answer{Status: http.StatusNotFound, Err: refused}, true},
		{Answer{Status: http.StatusConflict, Err: refused}, true},
		{Answer{Status: http.StatusUnprocessableEntity, Err: refused}, true},
		{Answer{Status: http.StatusTooManyRequests, Err: refused}, false},
		{Answer{Status: http.StatusInternalServerError, Err: refused}, false},
		{Answer{Status: http.StatusServiceUnavailable, Err: refused}, false},
		{Answer{Err: errors.New("connection reset by peer")}, false},
	} {
		t.Run(fmt.Sprint(test.answer.Status), func(t *testing.T) {
			if got := test.answer.judged(); got != test.want {
				t.Errorf("want %t, got %t", test.want, got)
			}
		})
	}
}

func TestCollectionPath(t *testing.T) {
	for _, test := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		want      string
	}{
		{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "dc-1", "/api/v1/namespaces/dc-1/pods"},
		{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "/api/v1/namespaces"},
		{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "dc-1", "/apis/apps/v1/namespaces/dc-1/replicasets"},
	} {
		if got := collectionPath(test.resource, test.namespace); got != test.want {
			t.Errorf("want %s, got %s", test.want, got)
		}
	}
}

// asking is a client of a server that answers by a handler, and counts how often it is asked.
func asking(t *testing.T, handler http.HandlerFunc) (*client, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		writer.Header().Set("Content-Type", "application/json")
		handler(writer, request)
	}))
	t.Cleanup(server.Close)
	client, err := newClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, asked
}

func TestReadsAreRepeatedWhenTheWayToTheServerFails(t *testing.T) {
	g := NewWithT(t)
	var failures atomic.Int32
	client, asked := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		if failures.Add(1) <= 2 {
			http.Error(writer, "overloaded", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	})

	answer := client.ask(t.Context(), request{verb: http.MethodGet, path: "/api/v1/namespaces/n/configmaps/c"})

	g.Expect(answer.Err).NotTo(HaveOccurred())
	g.Expect(answer.Object.GetName()).To(Equal("c"))
	g.Expect(asked.Load()).To(BeEquivalentTo(3))
}

func TestWritesAreNeverRepeated(t *testing.T) {
	for _, verb := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		t.Run(verb, func(t *testing.T) {
			g := NewWithT(t)
			client, asked := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
				http.Error(writer, "overloaded", http.StatusServiceUnavailable)
			})

			answer := client.ask(t.Context(), request{verb: verb, path: "/api/v1/namespaces/n/configmaps/c", body: map[string]any{}})

			g.Expect(answer.judged()).To(BeFalse())
			g.Expect(asked.Load()).To(BeEquivalentTo(1), "what was written must be known")
		})
	}
}

func TestARefusalIsNotAskedForAgain(t *testing.T) {
	g := NewWithT(t)
	client, asked := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict","message":"not that one"}`)
	})

	answer := client.ask(t.Context(), request{verb: http.MethodGet, path: "/api/v1/namespaces/n/configmaps/c"})

	g.Expect(answer.Status).To(Equal(http.StatusConflict))
	g.Expect(answer.Message()).To(Equal("not that one"), "the server's own words, not client-go's")
	g.Expect(apierrors.IsConflict(answer.Err)).To(BeTrue())
	g.Expect(asked.Load()).To(BeEquivalentTo(1))
}

func TestAnswersCarryStatusAndWarnings(t *testing.T) {
	g := NewWithT(t)
	client, _ := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Warning", `299 - "duplicate owner references"`)
		writer.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMap"}`)
	})

	answer := client.ask(t.Context(), request{verb: http.MethodPost, path: "/api/v1/namespaces/n/configmaps", body: map[string]any{}})

	g.Expect(answer).To(BeAnswered(http.StatusCreated))
	g.Expect(answer.Warnings).To(Equal([]string{"duplicate owner references"}))
}

func TestListedObjectsKnowTheirKind(t *testing.T) {
	g := NewWithT(t)
	var selector string
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		selector = request.URL.Query().Get("labelSelector")
		_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`)
	})

	objects, err := client.list(t.Context(), "/api/v1/namespaces/n/configmaps", SpecLabel+"=x")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector).To(Equal(SpecLabel + "=x"))
	g.Expect(objects).To(HaveLen(2))
	g.Expect(title(objects[1])).To(Equal(`ConfigMap "b"`))
}
