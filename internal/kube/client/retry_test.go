package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

const (
	notFound      = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`
	alreadyExists = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"AlreadyExists"}`
	invalid       = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid"}`
	conflict      = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}`
	budgetRefuses = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests",
		"details":{"causes":[{"reason":"DisruptionBudget"}],"retryAfterSeconds":10}}`
	// stored is the object that the client has created, and known an earlier one with the same name.
	stored = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"dcb2c4d5f6-1","uid":"u1","resourceVersion":"8"}}`
	known  = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"dcb2c4d5f6-1","uid":"u0","resourceVersion":"7"}}`
	// terminating is the object after a delete.
	terminating = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"dcb2c4d5f6-1","uid":"u1","deletionTimestamp":"2026-01-02T03:04:05Z"}}`
)

// broken stands for a connection that breaks, before or after the server has received the request.
const broken = -1

// step is the result of one request: the status code and the body of the response.
type step struct {
	method string
	status int
	body   string
}

// through returns a client of specs whose requests have these results in order.
func through(t *testing.T, steps ...step) (client *Client, done func()) {
	t.Helper()
	var mu sync.Mutex
	at := 0
	client, _ = asking(t, func(writer http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if at >= len(steps) {
			t.Errorf("request %d, %s %s, is one too many", at+1, request.Method, request.URL)
			return
		}
		next := steps[at]
		at++
		if next.method != request.Method {
			t.Errorf("request %d is %s %s, want %s", at, request.Method, request.URL, next.method)
		}
		if next.status == broken {
			panic(http.ErrAbortHandler)
		}
		writer.WriteHeader(next.status)
		_, _ = io.WriteString(writer, next.body)
	})
	client, err := client.Recorded(&Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	return client, func() {
		t.Helper()
		if at != len(steps) {
			t.Errorf("want %d requests, got %d", len(steps), at)
		}
	}
}

// writes are requests of specs, by name.
var writes = map[string]func(*testing.T, *Client) Response{
	"create": func(t *testing.T, c *Client) Response {
		return c.Create(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), "u0")
	},
	"update": func(t *testing.T, c *Client) Response {
		object := &Object{}
		if err := object.UnmarshalJSON([]byte(stored)); err != nil {
			t.Fatal(err)
		}
		object.SetResourceVersion("7")
		return c.Update(t.Context(), object, "")
	},
	"update without resourceVersion": func(t *testing.T, c *Client) Response {
		return c.Update(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), "")
	},
	"merge patch": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), types.MergePatchType, map[string]any{}, "")
	},
	"apply": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), types.ApplyYAMLPatchType, map[string]any{}, "")
	},
	"JSON patch": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), types.JSONPatchType, []any{}, "")
	},
	"delete": func(t *testing.T, c *Client) Response {
		return c.Delete(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), metav1.DeleteOptions{})
	},
	"delete of a known object": func(t *testing.T, c *Client) Response {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Delete(t.Context(), object, metav1.DeleteOptions{})
	},
	"delete that begins a deletion": func(t *testing.T, c *Client) Response {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Body: WithKind(metav1.DeleteOptions{}), Begins: true})
	},
	"repeated delete": func(t *testing.T, c *Client) Response {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Body: WithKind(metav1.DeleteOptions{}), Repeats: true})
	},
	"status patch": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), types.MergePatchType, map[string]any{}, "status")
	},
	"read and update": func(t *testing.T, c *Client) Response {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		object.SetResourceVersion("7")
		return c.Update(t.Context(), object, "")
	},
	"read and delete": func(t *testing.T, c *Client) Response {
		object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		return c.Delete(t.Context(), object, metav1.DeleteOptions{})
	},
	"dry-run delete": func(t *testing.T, c *Client) Response {
		return c.Delete(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), metav1.DeleteOptions{DryRun: []string{"All"}})
	},
	"token request": func(t *testing.T, c *Client) Response {
		return c.Do(t.Context(), in("dcb2c4d5f6-1", fixtures.ServiceAccount()), Request{Method: http.MethodPost, Subresource: "token", Body: map[string]any{}})
	},
	"deletecollection": func(t *testing.T, c *Client) Response {
		return c.DeleteCollection(t.Context(), configMaps, Request{Query: selecting("a=b")})
	},
	"delete of a canary": func(t *testing.T, c *Client) Response {
		canary := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
		canary.SetLabels(map[string]string{CanaryLabel: "true"})
		return c.Delete(t.Context(), canary, metav1.DeleteOptions{})
	},
	"eviction": func(t *testing.T, c *Client) Response {
		pod := in("dcb2c4d5f6-1", fixtures.ConfigMap("p"))
		pod.SetKind("Pod")
		return c.Do(t.Context(), pod, Request{Method: http.MethodPost, Subresource: "eviction", Body: map[string]any{}})
	},
}

func TestRetries_LostResponse(t *testing.T) {
	const post, put, patch, del, get = http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet
	const unknown, inferred = 0, -1
	for _, test := range []struct {
		name  string
		write string
		steps []step
		want  int // the status code, unknown, or inferred from the object
	}{
		{"a create that was not done", "create", []step{{post, broken, ""}, {post, 201, stored}}, 201},
		{"a create that was done", "create", []step{{post, 500, "<html>"}, {post, 409, alreadyExists}, {get, 200, stored}}, 201},
		{"a create of a name that an earlier object has", "create", []step{{post, broken, ""}, {post, 409, alreadyExists}, {get, 200, known}}, unknown},
		{"a create of an object that is gone", "create", []step{{post, broken, ""}, {post, 409, alreadyExists}, {get, 404, notFound}}, unknown},
		{"a create that is refused", "create", []step{{post, broken, ""}, {post, 422, invalid}}, unknown},
		{"a refused create", "create", []step{{post, 409, alreadyExists}}, 409},
		{"an update that was not done", "update", []step{{put, 503, ""}, {put, 200, stored}}, 200},
		{"an update that was done", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, stored}}, 200},
		{"an update after which another manager wrote", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, terminating}}, unknown},
		{"an update of an object that is gone", "update", []step{{put, broken, ""}, {put, 404, notFound}, {get, 404, notFound}}, unknown},
		{"an unconditional update", "update without resourceVersion", []step{{put, broken, ""}}, unknown},
		{"a merge patch", "merge patch", []step{{patch, broken, ""}, {patch, 200, stored}}, 200},
		{"a merge patch of an object that is gone", "merge patch", []step{{patch, broken, ""}, {patch, 404, notFound}, {get, 404, notFound}}, unknown},
		{"a merge patch that is refused", "merge patch", []step{{patch, broken, ""}, {patch, 422, invalid}, {get, 200, stored}}, 422},
		{"a merge patch that let the object go", "merge patch", []step{{patch, broken, ""}, {patch, 422, invalid}, {get, 404, notFound}}, unknown},
		{"a patch of a status that the kind lacks", "status patch", []step{{patch, 500, "<html>"}, {patch, 404, notFound}, {get, 200, stored}}, 404},
		{"an update of an object that is known to be absent", "read and update", []step{{get, 404, notFound}, {put, broken, ""}, {put, 404, notFound}, {get, 404, notFound}}, 404},
		{"a delete of an object that is known to be absent", "read and delete", []step{{get, 404, notFound}, {del, broken, ""}, {del, 404, notFound}, {get, 404, notFound}}, 404},
		{"a delete whose preconditions are not met", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 409, conflict}, {get, 200, stored}}, 409},
		{"an update of an object that another one has replaced", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, known}}, 409},
		{"an apply", "apply", []step{{patch, broken, ""}, {patch, 200, stored}}, 200},
		{"an apply that creates the object that it let go", "apply", []step{{patch, broken, ""}, {patch, 201, stored}}, unknown},
		{"a JSON patch", "JSON patch", []step{{patch, broken, ""}}, unknown},
		{"a delete that was not done", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 200, stored}}, 200},
		{"a delete that was done", "delete", []step{{del, broken, ""}, {get, 200, terminating}}, unknown},
		{"a delete of an object that is gone", "delete", []step{{del, 500, "<html>"}, {get, 404, notFound}}, unknown},
		{"a delete of an object that another one has replaced", "delete of a known object", []step{{del, broken, ""}, {get, 200, known}}, unknown},
		{"a delete that is done late", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 404, notFound}, {get, 404, notFound}}, unknown},
		{"a delete that begins a deletion and was not done", "delete that begins a deletion", []step{{del, broken, ""}, {get, 200, stored}, {del, 200, stored}}, 200},
		{"a delete that begins a deletion and was done", "delete that begins a deletion", []step{{del, broken, ""}, {get, 200, terminating}}, inferred},
		{"a delete that begins a deletion of an object that is gone", "delete that begins a deletion", []step{{del, 504, ""}, {get, 404, notFound}}, inferred},
		{"a delete that begins a deletion of an object that another one has replaced", "delete that begins a deletion", []step{{del, broken, ""}, {get, 200, known}}, inferred},
		{"a repeated delete", "repeated delete", []step{{del, broken, ""}, {get, 200, terminating}, {del, 200, terminating}}, 200},
		{"a repeated delete of an object that is gone", "repeated delete", []step{{del, broken, ""}, {get, 404, notFound}}, unknown},
		{"a delete that timed out", "delete", []step{{del, 504, ""}, {get, 200, stored}}, unknown},
		{"a delete that was throttled", "delete", []step{{del, 429, "not now"}, {del, 200, stored}}, 200},
		{"a dry-run delete", "dry-run delete", []step{{del, broken, ""}, {del, 200, stored}}, 200},
		{"a dry-run delete that is refused", "dry-run delete", []step{{del, broken, ""}, {del, 409, conflict}}, 409},
		{"a deletecollection", "deletecollection", []step{{del, broken, ""}}, unknown},
		{"a token request", "token request", []step{{post, broken, ""}, {post, 201, ""}}, 201},
		{"a delete of a canary", "delete of a canary", []step{{del, broken, ""}, {del, 404, notFound}}, 200},
		{"an eviction", "eviction", []step{{post, broken, ""}}, unknown},
		{"an eviction that was throttled", "eviction", []step{{post, 429, "not now"}, {post, 201, ""}}, 201},
		{"an eviction that a budget refuses", "eviction", []step{{post, 429, budgetRefuses}}, 429},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client, done := through(t, test.steps...)

			response := writes[test.write](t, client)

			done()
			if test.want == unknown {
				g.Expect(response.Err).To(HaveOccurred())
				g.Expect(response.Authoritative()).To(BeFalse(), fmt.Sprint(response.StatusCode))
				return
			}
			g.Expect(response.StatusCode).To(Equal(max(test.want, 0)))
			g.Expect(response.Authoritative()).To(BeTrue())
		})
	}
}

func TestAlwaysFails(t *testing.T) {
	for _, test := range []struct {
		name, write string
		// answers is how often the server decides on a repeated write, and outage is set when it serves nothing else.
		answers int
		outage  bool
		want    bool
	}{
		{"each time", "delete", 0, false, true},
		{"each time, in a collection", "deletecollection", 0, false, true},
		{"each time, on an eviction", "eviction", 0, false, true},
		{"each time, on a dry-run", "dry-run delete", 0, false, true},
		{"an outage", "delete", 0, true, false},
		{"a create", "create", 0, false, false},
		{"a token, for which other things must work", "token request", 0, false, false},
		{"it was served later", "deletecollection", 1, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sent := atomic.Int32{}
			client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				switch n := int(sent.Add(1)); {
				case request.Method == http.MethodGet:
					answering(http.StatusOK, stored)(writer, request)
				case n > 1 && n <= 1+test.answers:
					answering(http.StatusUnprocessableEntity, invalid)(writer, request)
				default:
					answering(http.StatusInternalServerError, "no")(writer, request)
				}
			})
			client, err := client.Recorded(&Recorder{})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			client.patience = 200 * time.Millisecond

			refused := writes[test.write](t, client)
			fails := client.FailsPersistently(t.Context(), refused, func(context.Context) bool { return !test.outage })

			g.Expect(refused.StatusCode).To(Equal(http.StatusInternalServerError))
			g.Expect(fails).To(Equal(test.want))
		})
	}
}

func TestResponse_WarningsOfLostResponse(t *testing.T) {
	g := NewWithT(t)
	lost, sent := step{http.MethodPost, broken, ""}, step{http.MethodPost, 201, stored}
	notDone, _ := through(t, lost, sent)
	done, _ := through(t, lost, step{http.MethodPost, 409, alreadyExists}, step{http.MethodGet, 200, stored})

	_, known := writes["create"](t, notDone).Warnings()
	g.Expect(known).To(BeTrue(), "the second one has them")
	_, known = writes["create"](t, done).Warnings()
	g.Expect(known).To(BeFalse())
}

func TestWithoutWriteRetries(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		if name == "delete of a canary" {
			continue // counted separately
		}
		t.Run(name, func(t *testing.T) {
			var sent []string
			client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				if request.Method == http.MethodGet {
					answering(http.StatusOK, stored)(writer, request)
					return
				}
				sent = append(sent, request.Method)
				panic(http.ErrAbortHandler)
			})
			g := NewWithT(t)
			recorded, err := client.Recorded(&Recorder{})
			g.Expect(err).NotTo(HaveOccurred())
			response := writes[name](t, recorded.WithoutWriteRetries())
			g.Expect(response.Authoritative()).To(BeFalse())
			g.Expect(sent).To(HaveExactElements(slices.Compact(slices.Clone(sent))), "each once")
		})
	}
}

func TestRetries_Harness(t *testing.T) {
	g := NewWithT(t)
	failures := 2
	client, requests := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			panic(http.ErrAbortHandler)
		}
		answering(http.StatusNotFound, notFound)(writer, nil)
	})

	response := client.Delete(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), metav1.DeleteOptions{})

	g.Expect(response.Err).NotTo(HaveOccurred(), "what is gone was to go")
	g.Expect(requests.Load()).To(BeEquivalentTo(3))
}
