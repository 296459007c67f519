package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

var configMaps = Collection{
	Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: "dcb2c4d5f6-1",
}

// in sets the namespace of an object.
func in(namespace string, object *Object) *Object {
	object.SetNamespace(namespace)
	return object
}

// asking returns a client of a server with a handler, and the number of its requests.
func asking(t *testing.T, handler http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	config, requests := apiservertest.Start(t, handler)
	client, err := New(config, NewGuard("dcb2c4d5f6"))
	if err != nil {
		t.Fatal(err)
	}
	client.patience = time.Second
	return client, requests
}

// answering returns a handler with a constant response.
func answering(status int, body string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Add("Warning", `299 - "look out"`)
		writer.WriteHeader(status)
		_, _ = io.WriteString(writer, body)
	}
}

func TestAuthoritative(t *testing.T) {
	refused := errors.New("refused")
	budget := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}},
	}}}
	for _, test := range []struct {
		response Response
		want     bool
	}{
		{Response{StatusCode: http.StatusOK}, true},
		{Response{StatusCode: http.StatusForbidden, Err: refused}, true},
		{Response{StatusCode: http.StatusNotFound, Err: refused}, true},
		{Response{StatusCode: http.StatusConflict, Err: refused}, true},
		{Response{StatusCode: http.StatusUnprocessableEntity, Err: refused}, true},
		{Response{StatusCode: http.StatusTooManyRequests, Err: refused}, false},
		{Response{StatusCode: http.StatusTooManyRequests, Err: budget}, true},
		{Response{StatusCode: http.StatusInternalServerError, Err: refused}, false},
		{Response{StatusCode: http.StatusInternalServerError, Err: errors.New("Internal error occurred: no unsafe deleter provided, can not ...")}, true},
		{Response{StatusCode: http.StatusInternalServerError, Err: errors.New("This pod has more than one PodDisruptionBudget, which ...")}, true},
		{Response{StatusCode: http.StatusInternalServerError, Err: errors.New(`failed calling webhook "reviewed.deletion-conformance.github.io": refused`)}, true},
		{Response{StatusCode: http.StatusInternalServerError, Err: errors.New(`failed calling webhook "somebody.example.com": refused`)}, false},
		{Response{StatusCode: http.StatusServiceUnavailable, Err: refused}, false},
		{Response{Err: errors.New("connection reset by peer")}, false},
	} {
		t.Run(fmt.Sprint(test.response.StatusCode), func(t *testing.T) {
			if got := test.response.Authoritative(); got != test.want {
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
		if got := (Collection{Resource: test.resource, Namespace: test.namespace}).path(); got != test.want {
			t.Errorf("want %s, got %s", test.want, got)
		}
	}
}

func TestRetries_Reads(t *testing.T) {
	g := NewWithT(t)
	var failures atomic.Int32
	client, requests := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		if failures.Add(1) <= 2 {
			http.Error(writer, "overloaded", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	})

	response := client.Get(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")))

	g.Expect(response.Err).NotTo(HaveOccurred())
	g.Expect(response.Object.GetName()).To(Equal("c"))
	g.Expect(requests.Load()).To(BeEquivalentTo(3))
}

func TestRetries_LateRead(t *testing.T) {
	g := NewWithT(t)
	client, requests := asking(t, answering(http.StatusOK, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`))
	over, end := context.WithCancelCause(t.Context())
	late := errors.New("the spec took too long")
	end(late)

	response := client.Send(over, Request{Method: http.MethodGet, Path: "/api/v1/namespaces/dcb2c4d5f6-1/configmaps/c"})

	g.Expect(response.Err).To(MatchError(late))
	g.Expect(response.Authoritative()).To(BeFalse())
	g.Expect(response.Object).To(BeNil())
	g.Expect(response.Request).To(Equal("GET /api/v1/namespaces/dcb2c4d5f6-1/configmaps/c"))
	g.Expect(requests.Load()).To(BeZero())
}

func TestRetries_BusyQuota(t *testing.T) {
	g := NewWithT(t)
	var refusals atomic.Int32
	refusing := answering(http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict",
		"message":"the object has been modified","details":{"kind":"resourcequotas","name":"platform"}}`)
	client, requests := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		if refusals.Add(1) <= 2 {
			refusing(writer, request)
			return
		}
		answering(http.StatusCreated, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}}`)(writer, request)
	})

	g.Expect(client.Create(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))).StatusCode).To(Equal(http.StatusCreated))
	g.Expect(requests.Load()).To(BeEquivalentTo(3))

	refusals.Store(0)
	quota := fixtures.ResourceQuota("q")
	g.Expect(client.Update(t.Context(), in("dcb2c4d5f6-1", quota), "").StatusCode).To(Equal(http.StatusConflict), "it is about the quota itself")
}

func TestRetries_Refusal(t *testing.T) {
	g := NewWithT(t)
	client, requests := asking(t, answering(http.StatusConflict,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict","message":"not that one"}`))

	response := client.Get(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")))

	g.Expect(response.StatusCode).To(Equal(http.StatusConflict))
	g.Expect(response.Message()).To(Equal("not that one"), "the server's own words, not client-go's")
	g.Expect(apierrors.IsConflict(response.Err)).To(BeTrue())
	g.Expect(requests.Load()).To(BeEquivalentTo(1))
}

func TestResponse(t *testing.T) {
	g := NewWithT(t)
	client, _ := asking(t, answering(http.StatusCreated, `{"apiVersion":"v1","kind":"ConfigMap"}`))

	response := client.Create(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")))

	g.Expect(response.StatusCode).To(Equal(http.StatusCreated))
	warnings, known := response.Warnings()
	g.Expect(known).To(BeTrue())
	g.Expect(warnings).To(Equal([]string{"look out"}))
	g.Expect(response.Object.GetKind()).To(Equal("ConfigMap"))
	g.Expect(response.Body).To(BeEquivalentTo(`{"apiVersion":"v1","kind":"ConfigMap"}`))
	g.Expect(response.Message()).To(BeEmpty())
}

func TestSend_BodyUnchanged(t *testing.T) {
	for _, test := range []struct {
		name string
		body any
		want string
	}{
		{"nothing", nil, ""},
		{"an object", map[string]any{"a": "b"}, `{"a":"b"}`},
		{"a list", []any{"a"}, `["a"]`},
		{"delete options", WithKind(metav1.DeleteOptions{}), `{"kind":"DeleteOptions","apiVersion":"v1"}`},
		{"bytes that are no JSON", []byte("{"), "{"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var sent, contentType string
			client, _ := asking(t, func(_ http.ResponseWriter, request *http.Request) {
				content, _ := io.ReadAll(request.Body)
				sent, contentType = string(content), request.Header.Get("Content-Type")
			})
			response := client.Send(t.Context(), Request{
				Method: http.MethodDelete, Path: "/api/v1/namespaces/dcb2c4d5f6-1/configmaps/c", Body: test.body, ContentType: "application/json",
			})
			g.Expect(response.Err).NotTo(HaveOccurred())
			g.Expect(sent).To(Equal(test.want))
			g.Expect(contentType).To(Equal("application/json"))
		})
	}
}

func TestCreate_NotServed(t *testing.T) {
	client, requests := asking(t, answering(http.StatusOK, "{}"))
	response := client.Create(t.Context(), fixtures.CustomResource("things.example", "t"))
	g := NewWithT(t)
	g.Expect(response.Err).To(MatchError(ContainSubstring("find the resource that serves things.example/v1, Kind=Thing")))
	g.Expect(response.Request).To(Equal(`create Thing "t"`))
	g.Expect(requests.Load()).To(BeZero())
}

func TestList(t *testing.T) {
	g := NewWithT(t)
	var selector string
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		selector = request.URL.Query().Get("labelSelector")
		_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},
			{"metadata":{"name":"b","labels":{"`+SpecLabel+`":"x"}}},{"metadata":{"name":"c","labels":{"`+SpecLabel+`":"y"}}}]}`)
	})

	objects, response := client.List(t.Context(), configMaps, SpecLabel+"=x")

	g.Expect(response.Err).NotTo(HaveOccurred())
	g.Expect(selector).To(Equal(SpecLabel + "=x"))
	g.Expect(objects).To(HaveLen(1), "a server may ignore selectors")
	g.Expect(Title(objects[0])).To(Equal(`ConfigMap "b"`))
}

func TestList_Invalid(t *testing.T) {
	for _, body := range []string{"", "<html>", `{"apiVersion":"v1","kind":"ConfigMap"}`} {
		t.Run(body, func(t *testing.T) {
			client, _ := asking(t, answering(http.StatusOK, body))
			_, response := client.List(t.Context(), configMaps, "")
			NewWithT(t).Expect(response.Err).To(MatchError("GET /api/v1/namespaces/dcb2c4d5f6-1/configmaps: the response is not a list"))
		})
	}
}

func TestRemovable(t *testing.T) {
	client, _ := asking(t, http.NotFound)
	for _, test := range []struct {
		name, namespace string
		want            []string
	}{
		{"in a namespace", "dcb2c4d5f6-1", []string{"configmaps", "events", "secrets", "pods", "resourcequotas", "serviceaccounts", "deployments", "replicasets", "jobs", "roles", "rolebindings"}},
		{"cluster-scoped", "", []string{"namespaces", "customresourcedefinitions", "volumeattachments"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			collections, err := client.Removable(test.namespace)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, collection := range collections {
				names = append(names, collection.Resource.Resource)
				g.Expect(collection.Namespace).To(Equal(test.namespace))
			}
			g.Expect(names).To(ConsistOf(test.want), "no subresources, and nothing that cannot be listed, deleted and patched")
		})
	}
}

func TestClear_NoDeleteCollection(t *testing.T) {
	path := configMaps.path()
	for _, test := range []struct {
		name string
		// refuses maps requests to the status codes of their refusals.
		refuses map[string]int
		want    int
	}{
		{"each may be deleted", nil, 0},
		{"one is gone already", map[string]int{"DELETE " + path + "/a": http.StatusNotFound}, 0},
		{"one may not be deleted", map[string]int{"DELETE " + path + "/a": http.StatusForbidden}, http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var mu sync.Mutex
			var requests []string
			client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				what := request.Method + " " + request.URL.Path
				mu.Lock()
				requests = append(requests, what)
				mu.Unlock()
				switch status, refused := test.refuses[what]; {
				case request.Method == http.MethodGet:
					_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","items":[
						{"metadata":{"name":"a","namespace":"dcb2c4d5f6-1","labels":{"`+RunLabel+`":"x"}}},
						{"metadata":{"name":"b","namespace":"dcb2c4d5f6-1","labels":{"`+RunLabel+`":"x"},"finalizers":["`+Hold+`","a.io/b"]}}]}`)
				case what == "DELETE "+path:
					writer.WriteHeader(http.StatusForbidden)
				case refused:
					writer.WriteHeader(status)
				case request.Method == http.MethodPatch:
					_, _ = fmt.Fprint(writer, stored)
				}
			})

			response := client.Clear(t.Context(), configMaps, RunLabel+"=x", Removal{})

			g.Expect(response.Err != nil).To(Equal(test.want != 0))
			if test.want != 0 {
				g.Expect(response.StatusCode).To(Equal(test.want))
			}
			g.Expect(requests).To(ConsistOf("GET "+path, "DELETE "+path, "DELETE "+path+"/a", "DELETE "+path+"/b", "PATCH "+path+"/b"))
		})
	}
}

func TestRemoval_DefinitionFinalizer(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var patch []byte
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		switch request.Method {
		case http.MethodGet:
			_, _ = fmt.Fprint(writer, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a","namespace":"dcb2c4d5f6-1","uid":"1","resourceVersion":"7",
				"finalizers":["a.io/b","customresourcecleanup.apiextensions.k8s.io"]}}]}`)
		case http.MethodPatch:
			patch, _ = io.ReadAll(request.Body)
			_, _ = io.WriteString(writer, stored)
		}
	})

	client.Clear(t.Context(), configMaps, "", Removal{AllFinalizers: true})

	g.Expect(patch).To(MatchJSON(
		`{"metadata":{"uid":"1","resourceVersion":"7","finalizers":["customresourcecleanup.apiextensions.k8s.io"]}}`))
}

func TestRecorder_OtherUser(t *testing.T) {
	g := NewWithT(t)
	var user string
	var groups []string
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		user, groups = request.Header.Get("Impersonate-User"), request.Header.Values("Impersonate-Group")
		_, _ = io.WriteString(writer, `{"apiVersion":"v1","kind":"ConfigMap"}`)
	})
	recorder := &Recorder{}
	recorded, err := client.Recorded(recorder)
	g.Expect(err).NotTo(HaveOccurred())
	eve, err := recorded.As(rest.ImpersonationConfig{UserName: "eve", Groups: []string{"a", "b"}})
	g.Expect(err).NotTo(HaveOccurred())

	eve.Get(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")))
	g.Expect(user).To(Equal("eve"))
	g.Expect(groups).To(Equal([]string{"a", "b"}))
	g.Expect(recorder.Take()).To(HaveLen(1))

	client.Get(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")))
	g.Expect(user).To(BeEmpty())
	g.Expect(recorder.Take()).To(BeEmpty())
}

func TestResponse_NoObject(t *testing.T) {
	object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
	for name, send := range map[string]func(*Client) Response{
		"create": func(c *Client) Response { return c.Create(t.Context(), object) },
		"update": func(c *Client) Response { return c.Update(t.Context(), object, "") },
		"get": func(c *Client) Response {
			return c.SendOnce(t.Context(), Request{Method: http.MethodGet, Path: "/api/v1/namespaces/dcb2c4d5f6-1/configmaps/c", Object: configMaps.referenceTo(object)})
		},
	} {
		for _, body := range []string{"", "<html>", "{", "null", `{"kind":"Pod","apiVersion":"v1"}`, `{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`} {
			t.Run(name+" answered by "+body, func(t *testing.T) {
				t.Parallel() // errors are retried for as long as the patience lasts
				client, _ := asking(t, answering(http.StatusOK, body))

				response := send(client)

				g := NewWithT(t)
				g.Expect(response.Err).To(HaveOccurred())
				g.Expect(response.Authoritative()).To(BeFalse(), "it is trouble on the way")
			})
		}
	}
}
