package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/apiservertest"
)

// there maps paths to the objects on the server of guarding.
var there = map[string]string{
	"/api/v1/namespaces/shared/configmaps/absent": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"absent","namespace":"shared"}}`,
	"/api/v1/namespaces/shared/configmaps/labelled": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"labelled","namespace":"shared",
		"labels":{"` + RunLabel + `":"dc1"}}}`,
	"/api/v1/namespaces/shared/configmaps/of-another-run": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"of-another-run","namespace":"shared",
		"labels":{"` + RunLabel + `":"dc2"}}}`,
	"/api/v1/namespaces/shared/configmaps/owner-dc1-settings": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"owner-dc1-settings"}}`,
	"/api/v1/namespaces/shared":                               `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shared"}}`,
	"/api/v1/namespaces/shared/serviceaccounts/default":       `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":"shared"}}`,
}

// guarding returns a client of run dc1, which created the namespace n, and the requests that its server received.
func guarding(t *testing.T) (*Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var requests []string
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, request.Method+" "+request.URL.Path)
		content, is := there[request.URL.Path]
		switch {
		case request.Method == http.MethodPatch:
			content = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"created","namespace":"shared"}}`
		case request.Method == http.MethodPost && request.URL.Path == "/api/v1/namespaces":
			writer.WriteHeader(http.StatusCreated)
			content = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"made"}}`
		case request.Method == http.MethodPost:
			writer.WriteHeader(http.StatusCreated)
			content = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"created","namespace":"shared"}}`
		case !is && !strings.HasSuffix(request.URL.Path, "/created"):
			writer.WriteHeader(http.StatusNotFound)
			content = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`
		}
		_, _ = fmt.Fprint(writer, content)
	})
	client, err := New(config, NewGuard("dc1", "n"))
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(requests)
	}
}

func TestARunWritesOnlyWhatItCreated(t *testing.T) {
	inCollection := func(namespace string) Collection {
		return Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: namespace}
	}
	object := func(namespace, name string) *Object { return in(namespace, fixtures.ConfigMap(name)) }
	remove := func(object *Object) func(*testing.T, *Client) error {
		return func(t *testing.T, c *Client) error { return c.Delete(t.Context(), object, metav1.DeleteOptions{}).Err }
	}
	send := func(method, path string, query url.Values, body any) func(*testing.T, *Client) error {
		return func(t *testing.T, c *Client) error {
			return c.Send(t.Context(), Request{Method: method, Path: path, Query: query, Body: body}).Err
		}
	}
	collect := func(namespace, selector string) func(*testing.T, *Client) error {
		return func(t *testing.T, c *Client) error {
			return c.DeleteCollection(t.Context(), inCollection(namespace), Request{Query: selecting(selector)}).Err
		}
	}
	const of, users = "/api/v1/namespaces/shared/", "/api/v1/namespaces/shared/configmaps/absent"
	account := fixtures.ServiceAccount()
	account.SetName("default")
	for name, test := range map[string]struct {
		send func(*testing.T, *Client) error
		// refused is the refusal; empty when the request is sent.
		refused string
		// reads is the number of requests that the decision needs.
		reads int
	}{
		"a delete in its own namespace": {remove(object("n", "any")), "", 0},
		"a delete of its own namespace": {remove(fixtures.Namespace("n")), "", 0},
		"a finalize of it":              {send(http.MethodPut, "/api/v1/namespaces/n/finalize", nil, nil), "", 0},
		"a delete of a user's object":   {remove(object("shared", "absent")), "refusing to delete ConfigMap shared/absent: it was not created by this run", 1},
		"a delete of an account":        {remove(in("shared", account)), "refusing to delete ServiceAccount shared/default: it was not created by this run", 1},
		"a delete of a namespace":       {remove(fixtures.Namespace("shared")), "refusing to delete Namespace shared: it was not created by this run", 1},
		"a finalize of one":             {send(http.MethodPut, of+"finalize", nil, nil), "refusing to update the finalize of Namespace shared: it was not", 1},
		"an update of another run's":    {send(http.MethodPut, of+"configmaps/of-another-run", nil, nil), "refusing to update ConfigMap shared/of-another-run", 1},
		"a patch of a user's object":    {send(http.MethodPatch, users, nil, map[string]any{}), "refusing to patch ConfigMap shared/absent", 1},
		"an eviction":                   {send(http.MethodPost, users+"/eviction", nil, map[string]any{}), "refusing to post the eviction of ConfigMap shared/absent", 1},
		"a command by a read":           {send(http.MethodGet, users+"/exec", nil, nil), "refusing to get the exec of ConfigMap shared/absent", 1},
		"a delete of a labelled object": {remove(object("shared", "labelled")), "", 1},
		"of what a controller made":     {remove(object("shared", "owner-dc1-settings")), "", 1},
		"of what does not exist":        {remove(object("shared", "nothing")), "NotFound", 1},
		"a dry-run":                     {send(http.MethodDelete, users, DryRun(), nil), "", 0},
		"a dry-run by query and body":   {send(http.MethodDelete, users, DryRun(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "", 0},
		"one that the body takes back":  {send(http.MethodDelete, users, DryRun(), WithKind(metav1.DeleteOptions{})), "refusing to delete", 1},
		"one that the body alone asks":  {send(http.MethodDelete, users, nil, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), "refusing to delete", 1},
		"a review":                      {send(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, map[string]any{}), "", 0},
		"all in its own namespace":      {collect("n", ""), "", 0},
		"all of its own":                {collect("shared", RunLabel+"=dc1,a=b"), "", 0},
		"all by a selector of others":   {collect("shared", "a=b"), `refusing to delete the collection configmaps in namespace "shared"`, 0},
		"all but its own":               {collect("shared", RunLabel+"!=dc1"), "refusing to delete the collection", 0},
		"all of any run":                {collect("shared", RunLabel+" in (dc1,dc2)"), "refusing to delete the collection", 0},
		"a path with a way out":         {send(http.MethodDelete, of+"../shared/configmaps/absent", nil, nil), "refusing to delete ConfigMap", 1},
		"a path that names nothing":     {send(http.MethodPost, "/logs", nil, map[string]any{}), "refusing to post /logs: the path names no object", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client, requests := guarding(t)

			err := test.send(t, client)

			switch test.refused {
			case "", "NotFound":
				g.Expect(IsNotOwned(err)).To(BeFalse(), fmt.Sprint(err))
				g.Expect(requests()).To(HaveLen(test.reads + 1))
			default:
				g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
				g.Expect(requests()).To(HaveLen(test.reads), "nothing else is sent, and nothing again")
			}
		})
	}
}

func TestWhatARunCreatedNeedsNoLook(t *testing.T) {
	g := NewWithT(t)
	client, requests := guarding(t)
	created := in("shared", fixtures.ConfigMap("created"))

	g.Expect(client.Create(t.Context(), created).Err).NotTo(HaveOccurred())
	eve, err := client.As(impersonating("eve"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(eve.Patch(t.Context(), created, types.MergePatchType, map[string]any{}, "").Err).NotTo(HaveOccurred())
	g.Expect(client.Delete(t.Context(), created, metav1.DeleteOptions{}).Err).NotTo(HaveOccurred())

	const path = "/api/v1/namespaces/shared/configmaps"
	g.Expect(requests()).To(Equal([]string{"POST " + path, "PATCH " + path + "/created", "DELETE " + path + "/created"}))
}

func TestANamespaceThatARunCreatesIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	client, requests := guarding(t)
	g.Expect(client.Create(t.Context(), fixtures.Namespace("made")).Err).NotTo(HaveOccurred())
	asking := len(requests())

	client.Delete(t.Context(), in("made", fixtures.ConfigMap("any")), metav1.DeleteOptions{})

	g.Expect(requests()[asking:]).To(Equal([]string{"DELETE /api/v1/namespaces/made/configmaps/any"}))
}

func TestExceptionsAreSingleObjects(t *testing.T) {
	g := NewWithT(t)
	client, _ := guarding(t)
	g.Expect(client.Except(in("shared", fixtures.ConfigMap("absent")))).To(Succeed())

	g.Expect(IsNotOwned(client.Delete(t.Context(), in("shared", fixtures.ConfigMap("absent")), metav1.DeleteOptions{}).Err)).To(BeFalse())
	g.Expect(IsNotOwned(client.Delete(t.Context(), in("shared", fixtures.ConfigMap("of-another-run")), metav1.DeleteOptions{}).Err)).To(BeTrue())
}

func TestAGuardKnowsItsPathsBehindAPrefix(t *testing.T) {
	g := NewWithT(t)
	var requests []string
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		requests = append(requests, request.Method+" "+request.URL.Path)
		_, _ = fmt.Fprint(writer, there["/api/v1/namespaces/shared/configmaps/absent"])
	})
	config.Host += "/k8s/clusters/c-1"
	client, err := New(config, NewGuard("dc1", "n"))
	g.Expect(err).NotTo(HaveOccurred())

	refused := client.Send(t.Context(), Request{Method: http.MethodDelete, Path: "/api/v1/namespaces/shared/configmaps/absent"})
	own := client.Send(t.Context(), Request{Method: http.MethodDelete, Path: "/api/v1/namespaces/n/configmaps/absent"})

	g.Expect(IsNotOwned(refused.Err)).To(BeTrue())
	g.Expect(own.Err).NotTo(HaveOccurred())
	const path = "/k8s/clusters/c-1/api/v1/namespaces/"
	g.Expect(requests).To(Equal([]string{"GET " + path + "shared/configmaps/absent", "DELETE " + path + "n/configmaps/absent"}))
}

func TestOnlyOwnFinalizersAreRemovedAndOnlyAsTheyWereRead(t *testing.T) {
	const foreign, collector = "cloud.example.com/free", metav1.FinalizerDeleteDependents
	for name, test := range map[string]struct {
		how  Removal
		kept []any
	}{
		"where all controllers are at work": {Removal{}, []any{foreign, collector}},
		"where no collector is":             {Removal{Absent: needs("gc")}, []any{foreign}},
		"where no other controllers are":    {Removal{Absent: needs("kcm")}, []any{foreign, collector}},
		"by force":                          {Removal{AllFinalizers: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var patches []map[string]any
			client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
				version := "8"
				if request.Method == http.MethodPatch {
					sent := map[string]any{}
					g.Expect(json.NewDecoder(request.Body).Decode(&sent)).To(Succeed())
					patches = append(patches, sent)
					if len(patches) == 1 { // a concurrent write
						writer.WriteHeader(http.StatusConflict)
						_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict"}`)
						return
					}
				}
				_, _ = fmt.Fprintf(writer, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"n","uid":"1","resourceVersion":%q,
					"finalizers":[%q,%q,%q]}}`, version, Hold, foreign, collector)
			})
			object := in("n", fixtures.ConfigMap("c"))
			object.SetUID("1")
			object.SetResourceVersion("7")
			object.SetFinalizers([]string{Hold})

			client.LetGo(t.Context(), object, test.how)

			g.Expect(patches).To(HaveLen(2))
			g.Expect(patches[0]["metadata"]).To(HaveKeyWithValue("resourceVersion", "7"))
			g.Expect(patches[1]["metadata"]).To(And(HaveKeyWithValue("resourceVersion", "8"), HaveKeyWithValue("uid", "1")))
			kept, _ := patches[1]["metadata"].(map[string]any)["finalizers"].([]any)
			if test.kept == nil {
				g.Expect(kept).To(BeEmpty())
			} else {
				g.Expect(kept).To(Equal(test.kept))
			}
		})
	}
}

func TestPodsThatNodesRunHaveTheirGrace(t *testing.T) {
	g := NewWithT(t)
	pod := in("n", fixtures.GhostBoundPod("pod"))
	g.Expect(Removal{}.optionsFor(pod).GracePeriodSeconds).To(HaveValue(BeZero()), "no kubelet has seen it")
	pod.Object["status"] = map[string]any{"startTime": "2026-01-01T00:00:00Z"}
	g.Expect(Removal{}.optionsFor(pod).GracePeriodSeconds).To(BeNil())
	overdue := Removal{Overdue: func(*Object) bool { return true }}
	g.Expect(overdue.optionsFor(pod).GracePeriodSeconds).To(HaveValue(BeZero()))
}

func needs(names ...v1alpha1.Feature) []v1alpha1.Feature { return names }

func impersonating(user string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: user}
}
