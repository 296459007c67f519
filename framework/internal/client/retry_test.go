package client

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

const (
	notFound      = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`
	alreadyExists = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"AlreadyExists"}`
	invalid       = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid"}`
	badRequest    = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":400,"reason":"BadRequest"}`
	conflict      = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}`
	budgetRefuses = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests",
		"details":{"causes":[{"reason":"DisruptionBudget"}],"retryAfterSeconds":10}}`
	// stored is an object, and terminating one that somebody has asked to go.
	stored      = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"n","uid":"u1","resourceVersion":"8"}}`
	terminating = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"n","uid":"u1","deletionTimestamp":"2026-01-02T03:04:05Z"}}`
)

// namesake is another object of the same name.
var namesake = strings.ReplaceAll(stored, "u1", "u2")

// aList is a collection.
func aList(objects ...string) string {
	return `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(objects, ",") + `]}`
}

// ofPod is an object as a pod.
func ofPod(object string) string { return strings.ReplaceAll(object, "ConfigMap", "Pod") }

// broken stands for a connection that breaks: before the server has seen the request, or after.
const broken = -1

// step is what becomes of one request: the status code and the body of the response.
type step struct {
	method string
	status int
	body   string
}

// through is a client of specs, whose requests have these fates, one after the other.
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

// writes are those that specs send, by what they do.
var writes = map[string]func(*testing.T, *Client) Response{
	"create": func(t *testing.T, c *Client) Response {
		return c.Create(t.Context(), in("n", fixtures.ConfigMap("c")), "u0")
	},
	"update": func(t *testing.T, c *Client) Response {
		object := &Object{}
		if err := object.UnmarshalJSON([]byte(stored)); err != nil {
			t.Fatal(err)
		}
		object.SetResourceVersion("7")
		return c.Update(t.Context(), object, "")
	},
	"let go": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetResourceVersion("7")
		object.SetDeletionTimestamp(new(metav1.Now()))
		return c.Update(t.Context(), object, "")
	},
	"overwrite": func(t *testing.T, c *Client) Response {
		return c.Update(t.Context(), in("n", fixtures.ConfigMap("c")), "")
	},
	"merge": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("n", fixtures.ConfigMap("c")), types.MergePatchType, map[string]any{}, "")
	},
	"merge a status": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("n", fixtures.ConfigMap("c")), types.MergePatchType, map[string]any{}, "status")
	},
	"update a status": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetResourceVersion("8")
		return c.Update(t.Context(), object, "status")
	},
	"step by step": func(t *testing.T, c *Client) Response {
		return c.Patch(t.Context(), in("n", fixtures.ConfigMap("c")), types.JSONPatchType, []any{}, "")
	},
	"delete": func(t *testing.T, c *Client) Response {
		return c.Delete(t.Context(), in("n", fixtures.ConfigMap("c")), metav1.DeleteOptions{})
	},
	"look and update": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		object.SetResourceVersion("7")
		return c.Update(t.Context(), object, "")
	},
	"look and merge": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		return c.Patch(t.Context(), object, types.MergePatchType, map[string]any{}, "")
	},
	"delete by uid": func(t *testing.T, c *Client) Response {
		return c.Delete(t.Context(), in("n", fixtures.ConfigMap("c")), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u1")})
	},
	"delete a known one": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Delete(t.Context(), object, metav1.DeleteOptions{})
	},
	"delete a known one by another uid": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Delete(t.Context(), object, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u3")})
	},
	"look and delete": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		return c.Delete(t.Context(), object, metav1.DeleteOptions{})
	},
	"look, create and delete": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		c.Get(t.Context(), object)
		c.Create(t.Context(), object)
		return c.Delete(t.Context(), object, metav1.DeleteOptions{})
	},
	"dry-run delete": func(t *testing.T, c *Client) Response {
		return c.Delete(t.Context(), in("n", fixtures.ConfigMap("c")), metav1.DeleteOptions{DryRun: []string{"All"}})
	},
	"delete and look at nothing": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Body: WithKind(metav1.DeleteOptions{}), Begins: true})
	},
	"delete again": func(t *testing.T, c *Client) Response {
		object := in("n", fixtures.ConfigMap("c"))
		object.SetUID("u1")
		return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Body: WithKind(metav1.DeleteOptions{}), Repeats: true})
	},
	"delete one of all": func(t *testing.T, c *Client) Response {
		query := selecting("a=b")
		query.Set("limit", "1")
		return c.DeleteCollection(t.Context(), configMaps, query, nil)
	},
	"ask for a token": func(t *testing.T, c *Client) Response {
		return c.Do(t.Context(), in("n", fixtures.ServiceAccount()), Request{Method: http.MethodPost, Subresource: "token", Body: map[string]any{}})
	},
	"delete all": func(t *testing.T, c *Client) Response {
		return c.DeleteCollection(t.Context(), configMaps, selecting("a=b"), nil)
	},
	"delete a canary": func(t *testing.T, c *Client) Response {
		canary := in("n", fixtures.ConfigMap("c"))
		canary.SetLabels(map[string]string{CanaryLabel: "true"})
		return c.Delete(t.Context(), canary, metav1.DeleteOptions{})
	},
	"evict": func(t *testing.T, c *Client) Response {
		pod := in("n", fixtures.ConfigMap("p"))
		pod.SetKind("Pod")
		return c.Do(t.Context(), pod, Request{Method: http.MethodPost, Subresource: "eviction", Body: map[string]any{}})
	},
}

func TestAWriteWhoseResponseWasLostIsSentAgainWhereThatChangesNothing(t *testing.T) {
	const post, put, patch, del, get = http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet
	const seen = -1
	for _, test := range []struct {
		name  string
		write string
		steps []step
		want  int // the status code; 0 where it is not known what was done, and seen where nothing but that it was is known
	}{
		{"a create that was not done", "create", []step{{post, broken, ""}, {post, 201, stored}}, 201},
		{"a create that was done", "create", []step{{post, 500, "<html>"}, {post, 409, alreadyExists}, {get, 200, stored}}, 201},
		{"a create that was done, and whose address is taken", "create", []step{{post, broken, ""}, {post, 422, invalid}, {get, 200, stored}}, 201},
		{"a create that is refused", "create", []step{{post, broken, ""}, {post, 422, invalid}, {get, 404, notFound}}, 422},
		{"a create of what is gone again", "create", []step{{post, broken, ""}, {post, 409, alreadyExists}, {get, 404, notFound}}, 0},
		{"a create of a name that was taken before", "create", []step{{post, 409, alreadyExists}}, 409},
		{"an update that was not done", "update", []step{{put, 503, ""}, {put, 200, stored}}, 200},
		{"an update that was done", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, stored}}, 200},
		{"an update after which somebody wrote", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, terminating}}, 0},
		{"an update of what is gone", "update", []step{{put, broken, ""}, {put, 404, notFound}, {get, 404, notFound}}, 0},
		{"an update that lets go", "let go", []step{{put, broken, ""}, {put, 404, notFound}, {get, 404, notFound}}, 200},
		{"an update of a namesake", "update", []step{{put, broken, ""}, {put, 409, conflict}, {get, 200, namesake}}, 409},
		{"an update of what is known to be absent", "look and update", []step{{get, 404, notFound}, {put, broken, ""}, {put, 404, notFound}, {get, 404, notFound}}, 404},
		{"an update that made what was absent", "look and update", []step{{get, 404, notFound}, {put, broken, ""}, {put, 409, conflict}, {get, 200, terminating}, {get, 200, terminating}}, 0},
		{"an apply of what is known to be absent", "look and merge", []step{{get, 404, notFound}, {patch, broken, ""}, {patch, 409, conflict}, {get, 404, notFound}}, 409},
		{"an update whatever there is", "overwrite", []step{{put, broken, ""}}, 0},
		{"a patch that says what is to be", "merge", []step{{patch, broken, ""}, {patch, 200, stored}}, 200},
		{"a patch of what is gone", "merge", []step{{patch, broken, ""}, {patch, 404, notFound}}, 0},
		{"a patch of a status that the kind has not", "merge a status", []step{{patch, 500, "<html>"}, {patch, 404, notFound}, {get, 200, stored}}, 404},
		{"a patch of the status of what is gone", "merge a status", []step{{patch, broken, ""}, {patch, 404, notFound}, {get, 404, notFound}}, 0},
		{"an update of a status that the kind has not", "update a status", []step{{put, broken, ""}, {put, 404, notFound}, {get, 200, stored}}, 404},
		{"a patch that is refused", "merge", []step{{patch, broken, ""}, {patch, 422, invalid}, {get, 200, stored}}, 422},
		{"a patch that let go", "merge", []step{{patch, broken, ""}, {patch, 400, badRequest}, {get, 404, notFound}}, 0},
		{"a patch that says what to change", "step by step", []step{{patch, broken, ""}}, 0},
		{"a delete that was not done", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 200, stored}}, 200},
		{"a delete that was done", "delete", []step{{del, broken, ""}, {get, 200, terminating}}, 0},
		{"a delete of what is gone", "delete", []step{{del, 500, "<html>"}, {get, 404, notFound}}, 0},
		{"a delete that may go on", "delete", []step{{del, 504, ""}}, 0},
		{"a delete that was done late", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 404, notFound}}, 0},
		{"one more delete that was done or was not", "delete again", []step{{del, broken, ""}, {get, 200, terminating}, {get, 200, terminating}, {del, 200, terminating}}, 200},
		{"one more delete, after which it is gone", "delete again", []step{{del, broken, ""}, {get, 404, notFound}, {get, 404, notFound}}, 0},
		{"a delete of what is known to be absent", "look and delete", []step{{get, 404, notFound}, {del, broken, ""}, {del, 404, notFound}, {get, 404, notFound}}, 404},
		{"a delete whose conditions are not met", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 409, conflict}, {get, 200, stored}}, 409},
		{"a delete whose conditions are not met any more", "delete", []step{{del, broken, ""}, {get, 200, stored}, {del, 409, conflict}, {get, 200, terminating}}, 0},
		{"a delete of what has come back", "delete by uid", []step{{del, broken, ""}, {get, 200, namesake}}, 0},
		{"a delete of what has a namesake now", "delete a known one", []step{{del, broken, ""}, {get, 200, namesake}}, 0},
		{"a delete of what has not gone yet", "delete by uid", []step{{del, broken, ""}, {get, 200, stored}, {del, 200, stored}}, 200},
		{"a delete that another object is meant by", "delete a known one by another uid", []step{{del, broken, ""}, {get, 200, stored}, {del, 409, conflict}, {get, 200, stored}}, 409},
		{"a delete of what is known to be there", "look and delete", []step{{get, 200, stored}, {del, broken, ""}, {get, 404, notFound}}, 0},
		{"a delete of what was created since", "look, create and delete", []step{{get, 404, notFound}, {post, 201, stored}, {del, broken, ""}, {get, 404, notFound}}, 0},
		{"a delete that changes nothing", "dry-run delete", []step{{del, broken, ""}, {del, 200, stored}}, 200},
		{"a delete at which nobody looks that was not done", "delete and look at nothing", []step{{del, broken, ""}, {get, 200, stored}, {get, 200, stored}, {del, 200, stored}}, 200},
		{"a delete at which nobody looks that was done", "delete and look at nothing", []step{{del, broken, ""}, {get, 200, terminating}}, seen},
		{"a delete at which nobody looks of what is gone", "delete and look at nothing", []step{{del, 504, ""}, {get, 404, notFound}}, seen},
		{"a delete at which nobody looks of what has a namesake", "delete and look at nothing", []step{{del, broken, ""}, {get, 200, namesake}}, seen},
		{"a delete of many that was not done", "delete all", []step{{del, broken, ""}, {get, 200, aList(stored)}, {del, 200, aList(stored)}}, 200},
		{"a delete of many that was done", "delete all", []step{{del, broken, ""}, {get, 200, aList()}}, 0},
		{"a delete of many that was begun", "delete all", []step{{del, 500, "<html>"}, {get, 200, aList(stored, terminating)}}, 0},
		{"a delete of some", "delete one of all", []step{{del, broken, ""}}, 0},
		{"a question", "ask for a token", []step{{post, broken, ""}, {post, 201, ""}}, 201},
		{"a delete that nobody judges", "delete a canary", []step{{del, broken, ""}, {del, 404, notFound}}, 200},
		{"an eviction that was not done", "evict", []step{{post, broken, ""}, {get, 200, ofPod(stored)}, {post, 201, ""}}, 201},
		{"an eviction that was done", "evict", []step{{post, broken, ""}, {get, 200, ofPod(terminating)}}, 0},
		{"an eviction that a budget refuses", "evict", []step{{post, broken, ""}, {get, 200, ofPod(stored)}, {post, 429, budgetRefuses}}, 429},
		{"what nobody has looked at", "evict", []step{{post, 429, "not now"}, {post, 201, ""}}, 201},
		{"a budget's refusal", "evict", []step{{post, 429, budgetRefuses}}, 429},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client, done := through(t, test.steps...)

			response := writes[test.write](t, client)

			done()
			if test.want == 0 {
				g.Expect(response.Err).To(HaveOccurred())
				g.Expect(response.Authoritative()).To(BeFalse(), fmt.Sprint(response.StatusCode))
				return
			}
			g.Expect(response.StatusCode).To(Equal(max(test.want, 0)))
			g.Expect(response.Authoritative()).To(BeTrue())
		})
	}
}

func TestWarningsAreLostWithTheirResponse(t *testing.T) {
	g := NewWithT(t)
	lost, sent := step{http.MethodPost, broken, ""}, step{http.MethodPost, 201, stored}
	notDone, _ := through(t, lost, sent)
	done, _ := through(t, lost, step{http.MethodPost, 409, alreadyExists}, step{http.MethodGet, 200, stored})

	_, known := writes["create"](t, notDone).Warnings()
	g.Expect(known).To(BeTrue(), "the second one has them")
	_, known = writes["create"](t, done).Warnings()
	g.Expect(known).To(BeFalse())
}

func TestANameThatWasTakenBeforeIsToldFromALostCreate(t *testing.T) {
	g := NewWithT(t)
	client, done := through(t, step{http.MethodPost, broken, ""}, step{http.MethodPost, 409, alreadyExists}, step{http.MethodGet, 200, stored})

	response := client.Create(t.Context(), in("n", fixtures.ConfigMap("c")), "u0", "u1")

	done()
	g.Expect(response.Authoritative()).To(BeFalse(), "the object is that of an earlier request")
}

func TestWhereItIsCountedNoWriteIsSentAgain(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		if name == "delete a canary" {
			continue // it is counted apart
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
			response := writes[name](t, recorded.Once())
			g.Expect(response.Authoritative()).To(BeFalse())
			g.Expect(sent).To(HaveExactElements(slices.Compact(slices.Clone(sent))), "each once")
		})
	}
}

func TestWhatTheHarnessDoesForItselfIsDoneUntilTheServerHasDecided(t *testing.T) {
	g := NewWithT(t)
	failures := 2
	client, asked := asking(t, func(writer http.ResponseWriter, _ *http.Request) {
		if failures--; failures >= 0 {
			panic(http.ErrAbortHandler)
		}
		answering(http.StatusNotFound, notFound)(writer, nil)
	})

	response := client.Delete(t.Context(), in("n", fixtures.ConfigMap("c")), metav1.DeleteOptions{})

	g.Expect(response.Err).NotTo(HaveOccurred(), "what is gone was to go")
	g.Expect(asked.Load()).To(BeEquivalentTo(3))
}
