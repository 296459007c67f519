package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/apiservertest"
)

const (
	ownRun       = "dcb2c4d5f6"
	ownNamespace = ownRun + "-1"
	// ownSelector selects the run's label, which also users' objects of the server of guarding have.
	ownSelector = RunLabel + "=" + ownRun
	classes     = "/apis/networking.k8s.io/v1/ingressclasses"
	shared      = "/api/v1/namespaces/shared/"
)

// guarding returns a client of a run, and the requests that its server received. The server lists one object for each path in names.
func guarding(t *testing.T, guard *Guard, names map[string]string) (*Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var requests []string
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, request.Method+" "+request.URL.Path)
		if request.Method == http.MethodPost {
			writer.WriteHeader(http.StatusCreated)
		}
		if name, ok := names[request.URL.Path]; ok && request.Method == http.MethodGet {
			_, _ = fmt.Fprintf(writer, `{"kind":"IngressClassList","apiVersion":"networking.k8s.io/v1","items":[{"metadata":{"name":%q}}]}`, name)
			return
		}
		_, _ = fmt.Fprint(writer, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"created","namespace":"shared","uid":"u1"}}`)
	})
	client, err := New(config, guard)
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(requests)
	}
}

func TestGuard(t *testing.T) {
	const (
		own        = "/api/v1/namespaces/" + ownNamespace + "/"
		notSent    = "others may own it: use an object of the run"
		collection = "it may delete objects of others: select the run's own by " + ownSelector
		inside     = "it can reach something of others: use an object in one of them"
		named      = "create it under a name that does"
		uncertain  = "the name in its body is not certain"
	)
	for name, test := range map[string]struct {
		request Request
		// refused is the refusal; empty when the request is sent.
		refused string
	}{
		"a delete in the run's namespace":      {Request{Method: "DELETE", Path: own + "configmaps/any"}, ""},
		"a command in it":                      {Request{Method: "GET", Path: own + "pods/any/exec"}, ""},
		"a collection in it":                   {Request{Method: "DELETE", Path: own + "configmaps"}, ""},
		"a create in it":                       {Request{Method: "POST", Path: own + "configmaps", Body: []byte("any: form")}, ""},
		"a delete of it":                       {Request{Method: "DELETE", Path: "/api/v1/namespaces/" + ownNamespace}, ""},
		"a finalize of it":                     {Request{Method: "PUT", Path: own + "finalize"}, ""},
		"a delete of a named object":           {Request{Method: "DELETE", Path: classes + "/a-" + ownRun + "-x"}, ""},
		"an eviction of a named pod":           {Request{Method: "POST", Path: shared + "pods/a-" + ownRun + "-x/eviction"}, ""},
		"a delete of a user's object":          {Request{Method: "DELETE", Path: shared + "configmaps/a"}, `refusing to delete configmaps "a" in namespace "shared": neither`},
		"of a user's namespace":                {Request{Method: "DELETE", Path: "/api/v1/namespaces/shared"}, notSent},
		"a finalize of one":                    {Request{Method: "PUT", Path: shared + "finalize"}, `refusing to update the finalize of namespaces "shared": neither`},
		"an apply that would create":           {Request{Method: "PATCH", Path: shared + "configmaps/absent", ContentType: "application/apply-patch+yaml"}, notSent},
		"an eviction":                          {Request{Method: "POST", Path: shared + "pods/a/eviction"}, notSent},
		"a token":                              {Request{Method: "POST", Path: shared + "serviceaccounts/default/token"}, notSent},
		"a token by a dry-run":                 {Request{Method: "POST", Path: shared + "serviceaccounts/default/token", Query: DryRun()}, notSent},
		"a definition of another group":        {Request{Method: "DELETE", Path: "/apis/example.com/v1/namespaces/shared/apiservices/a." + Domain}, notSent},
		"the id within a word":                 {Request{Method: "DELETE", Path: classes + "/a" + ownRun}, notSent},
		"a command by a read":                  {Request{Method: "GET", Path: shared + "pods/a/exec"}, inside},
		"a command in a pod by its port":       {Request{Method: "GET", Path: shared + "pods/db-0:8080/proxy"}, inside},
		"a proxy to a named pod":               {Request{Method: "DELETE", Path: shared + "pods/a-" + ownRun + "/proxy"}, inside},
		"a proxy to a service by its port":     {Request{Method: "POST", Path: shared + "services/https:payments:443/proxy"}, inside},
		"a proxy as a dry-run":                 {Request{Method: "POST", Path: shared + "services/https:payments:443/proxy/a", Query: DryRun()}, inside},
		"a read of an unknown subresource":     {Request{Method: "GET", Path: shared + "machines/a/console"}, inside},
		"a proxy by the legacy path":           {Request{Method: "GET", Path: "/api/v1/proxy/namespaces/shared/services/payments"}, "refusing to get"},
		"a log":                                {Request{Method: "GET", Path: shared + "pods/a/log"}, ""},
		"a status":                             {Request{Method: "GET", Path: shared + "pods/a/status"}, ""},
		"a dry-run":                            {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun()}, ""},
		"a dry-run by query and body":          {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: metav1.DeleteOptions{DryRun: []string{"All"}}}, ""},
		"one that the body takes back":         {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: WithKind(metav1.DeleteOptions{})}, notSent},
		"one that the body alone contains":     {Request{Method: "DELETE", Path: shared + "configmaps/a", Body: metav1.DeleteOptions{DryRun: []string{"All"}}}, notSent},
		"one in other case":                    {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: []byte(`{"DryRun":["All"]}`)}, notSent},
		"one that is taken back in other case": {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: []byte(`{"dryRun":["All"],"DRYRUN":[]}`)}, notSent},
		"one with duplicate fields":            {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: []byte(`{"dryRun":[],"dryRun":["All"]}`)}, notSent},
		"one in YAML":                          {Request{Method: "DELETE", Path: shared + "configmaps/a", Query: DryRun(), Body: []byte(`{"dryRun":["All"]}`), ContentType: "application/yaml"}, notSent},
		"one with two values":                  {Request{Method: "PUT", Path: shared + "configmaps/a", Query: url.Values{"dryRun": {"All", ""}}}, notSent},
		"one of a path without an object":      {Request{Method: "POST", Path: "/logs", Query: DryRun()}, "refusing to post /logs: the path names no object"},
		"a review":                             {Request{Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Body: map[string]any{}}, ""},
		"a review of a namespace":              {Request{Method: "POST", Path: "/apis/authorization.k8s.io/v1/namespaces/shared/localsubjectaccessreviews"}, ""},
		"a review of another group":            {Request{Method: "POST", Path: "/apis/shop.example.com/v1/namespaces/shared/productreviews", Body: map[string]any{}}, named},
		"a delete of one":                      {Request{Method: "DELETE", Path: "/apis/shop.example.com/v1/namespaces/shared/productreviews/x"}, notSent},
		"a delete of all previews":             {Request{Method: "DELETE", Path: "/apis/shop.example.com/v1/namespaces/shared/previews"}, collection},
		"a delete of a name of reviews":        {Request{Method: "DELETE", Path: shared + "configmaps/top-reviews"}, notSent},
		"a create of a named object":           {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"name":"a-` + ownRun + `"}}`)}, ""},
		"a create of a generated name":         {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"generateName":"a-` + ownRun + `-"}}`)}, ""},
		"a create of another name":             {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"name":"public"}}`)}, `refusing to create ingressclasses: neither its name, "public"`},
		"of a generated one":                   {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"generateName":"` + ownRun + `"}}`)}, named},
		"of one that is cut":                   {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"generateName":"` + strings.Repeat("a", 50) + "-" + ownRun + `-"}}`)}, named},
		"of a name that wins":                  {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"name":"public","generateName":"` + ownRun + `-"}}`)}, named},
		"of two names":                         {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"name":"public","name":"` + ownRun + `-a"}}`)}, uncertain},
		"of a name in other case":              {Request{Method: "POST", Path: classes, Body: []byte(`{"metadata":{"Name":"public","name":"` + ownRun + `-a"}}`)}, uncertain},
		"of metadata in other case":            {Request{Method: "POST", Path: classes, Body: []byte(`{"Metadata":{"name":"public"},"metadata":{"name":"` + ownRun + `-a"}}`)}, uncertain},
		"of protobuf":                          {Request{Method: "POST", Path: classes, Body: []byte("k8s"), ContentType: "application/vnd.kubernetes.protobuf"}, uncertain},
		"a binding of a user's pod":            {Request{Method: "POST", Path: shared + "bindings", Body: []byte(`{"metadata":{"name":"db-0"}}`)}, named},
		"all of the run by name":               {Request{Method: "DELETE", Path: classes, Query: selecting(ownSelector)}, ""},
		"all with the run's label":             {Request{Method: "DELETE", Path: classes + "2", Query: selecting(ownSelector)}, `it selects IngressClass "public"`},
		"all that cannot be listed":            {Request{Method: "DELETE", Path: shared + "configmaps", Query: selecting(ownSelector)}, "it could not be listed"},
		"all by another label":                 {Request{Method: "DELETE", Path: classes, Query: selecting("a=b")}, collection},
		"all but the run's":                    {Request{Method: "DELETE", Path: classes, Query: selecting(RunLabel + "!=" + ownRun)}, collection},
		"all of two runs":                      {Request{Method: "DELETE", Path: classes, Query: selecting(RunLabel + " in (" + ownRun + ",dc2)")}, collection},
		"all by two selectors":                 {Request{Method: "DELETE", Path: classes, Query: url.Values{"labelSelector": {ownSelector, "a=b"}}}, "ambiguous"},
		"all of an older state":                {Request{Method: "DELETE", Path: classes, Query: url.Values{"labelSelector": {ownSelector}, "resourceVersion": {"1"}}}, "an older state"},
		"a path with a way out":                {Request{Method: "DELETE", Path: own + "../shared/configmaps/a"}, notSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client, requests := guarding(t, NewGuard(ownRun), map[string]string{classes: "a-" + ownRun, classes + "2": "public"})

			err := client.SendOnce(t.Context(), test.request).Err

			sent := ContainElement(test.request.Method + " " + test.request.Path)
			if test.refused == "" {
				g.Expect(IsNotOwned(err)).To(BeFalse(), fmt.Sprint(err))
				g.Expect(requests()).To(sent)
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
				g.Expect(requests()).NotTo(sent)
			}
		})
	}
}

func TestGuard_CreateNamed(t *testing.T) {
	g := NewWithT(t)
	client, requests := guarding(t, NewGuard(ownRun), nil)
	created := in("shared", fixtures.ConfigMap("created"))
	const path = shared + "configmaps/created"
	g.Expect(IsNotOwned(client.Create(t.Context(), created).Err)).To(BeTrue(), "no flag names it")

	g.Expect(client.CreateNamed(t.Context(), created).Err).NotTo(HaveOccurred())

	withUID := func(method string, body any) Request { return Request{Method: method, Path: path, Body: body} }
	for _, refused := range []Request{
		withUID(http.MethodDelete, nil),
		withUID(http.MethodDelete, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u2")}),
		withUID(http.MethodDelete, map[string]any{"metadata": map[string]any{"uid": "u1"}}),
		withUID(http.MethodPut, map[string]any{"preconditions": map[string]any{"uid": "u1"}}),
		withUID(http.MethodPatch, map[string]any{"metadata": map[string]any{}}),
	} {
		g.Expect(IsNotOwned(client.SendOnce(t.Context(), refused).Err)).To(BeTrue(), "%v", refused)
	}
	for _, sent := range []Request{
		withUID(http.MethodDelete, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u1")}),
		withUID(http.MethodPut, map[string]any{"metadata": map[string]any{"uid": "u1"}}),
		withUID(http.MethodPatch, map[string]any{"metadata": map[string]any{"uid": "u1"}}),
	} {
		g.Expect(client.SendOnce(t.Context(), sent).Err).NotTo(HaveOccurred())
	}
	g.Expect(requests()).To(Equal([]string{"POST " + shared + "configmaps", "DELETE " + path, "PUT " + path, "PATCH " + path}))
}

func TestGuard_Except(t *testing.T) {
	g := NewWithT(t)
	client, _ := guarding(t, NewGuard(""), nil)
	g.Expect(client.Except(in("shared", fixtures.ConfigMap("created")))).To(Succeed())

	g.Expect(client.Create(t.Context(), in("shared", fixtures.ConfigMap("created"))).Err).NotTo(HaveOccurred())
	g.Expect(client.Delete(t.Context(), in("shared", fixtures.ConfigMap("created")), metav1.DeleteOptions{}).Err).NotTo(HaveOccurred())
	g.Expect(client.Delete(t.Context(), in("shared", fixtures.ConfigMap("other")), metav1.DeleteOptions{}).Err).
		To(MatchError(ContainSubstring("this run changes nothing")))
}

func TestGuard_NoRun(t *testing.T) {
	object := in(ownNamespace, fixtures.ConfigMap("created"))
	for name, test := range map[string]struct {
		send func(*Client) Response
		sent bool
	}{
		"a read":             {func(c *Client) Response { return c.Get(t.Context(), object) }, true},
		"a dry-run creation": {func(c *Client) Response { return c.DryRunCreate(t.Context(), object) }, true},
		"a dry-run delete": {func(c *Client) Response {
			return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Query: DryRun()})
		}, true},
		"a review": {func(c *Client) Response {
			return c.SendOnce(t.Context(), Request{Method: http.MethodPost, Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"})
		}, true},
		"a delete whose body takes the dry-run back": {func(c *Client) Response {
			return c.Do(t.Context(), object, Request{Method: http.MethodDelete, Query: DryRun(), Body: WithKind(metav1.DeleteOptions{})})
		}, false},
		"a delete of a name of reviews": {func(c *Client) Response {
			return c.Delete(t.Context(), in(ownNamespace, fixtures.ConfigMap("top-reviews")), metav1.DeleteOptions{})
		}, false},
		"a creation": {func(c *Client) Response { return c.Create(t.Context(), object) }, false},
		"a delete of all": {func(c *Client) Response {
			return c.DeleteCollection(t.Context(), configMaps, Request{Query: url.Values{"labelSelector": {"a=b"}}})
		}, false},
		"a patch": {func(c *Client) Response {
			return c.Patch(t.Context(), object, types.MergePatchType, map[string]any{}, "")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			client, requests := guarding(t, NewGuard(""), nil)

			response := test.send(client)

			g.Expect(IsNotOwned(response.Err)).To(Equal(!test.sent), fmt.Sprint(response.Err))
			g.Expect(len(requests()) > 0).To(Equal(test.sent))
		})
	}
}

func TestGuard_BehindPrefix(t *testing.T) {
	g := NewWithT(t)
	var requests []string
	config, _ := apiservertest.Start(t, func(_ http.ResponseWriter, request *http.Request) {
		requests = append(requests, request.Method+" "+request.URL.Path)
	})
	config.Host += "/k8s/clusters/c-1"
	client, err := New(config, NewGuard(ownRun))
	g.Expect(err).NotTo(HaveOccurred())

	refused := client.Send(t.Context(), Request{Method: http.MethodDelete, Path: shared + "configmaps/a"})
	client.Send(t.Context(), Request{Method: http.MethodDelete, Path: "/api/v1/namespaces/" + ownNamespace + "/configmaps/a"})

	root := client.Send(t.Context(), Request{Method: http.MethodGet, Path: "/"})
	changed := client.Send(t.Context(), Request{Method: http.MethodDelete, Path: "/"})

	g.Expect(IsNotOwned(refused.Err)).To(BeTrue())
	g.Expect(root.Err).NotTo(HaveOccurred(), "it lists the paths")
	g.Expect(IsNotOwned(changed.Err)).To(BeTrue())
	g.Expect(requests).To(Equal([]string{
		"DELETE /k8s/clusters/c-1/api/v1/namespaces/" + ownNamespace + "/configmaps/a", "GET /k8s/clusters/c-1/",
	}))
}

func TestRemoveEach_CopiedLabel(t *testing.T) {
	g := NewWithT(t)
	var deleted []string
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodDelete {
			deleted = append(deleted, request.URL.Path)
		}
		_, _ = fmt.Fprintf(writer, `{"kind":"ConfigMapList","apiVersion":"v1","items":[
			{"metadata":{"name":"copy","namespace":"shared","labels":{%[1]q:%[2]q},"finalizers":[%[3]q]}},
			{"metadata":{"name":"a-%[2]s","namespace":"shared","labels":{%[1]q:%[2]q}}}]}`, RunLabel, ownRun, Hold)
	})

	found, response := client.RemoveEach(t.Context(), Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespace: "shared",
	}, ownSelector, Removal{})

	g.Expect(response.Err).NotTo(HaveOccurred())
	g.Expect(found).To(ConsistOf(HaveField("GetName()", "a-"+ownRun)))
	g.Expect(deleted).To(Equal([]string{shared + "configmaps/a-" + ownRun}))
}

// The attach/detach controller prescribes the names of VolumeAttachments, so that their nodes show whose they are.
func TestRemoveEach_VolumeAttachments(t *testing.T) {
	g := NewWithT(t)
	var deleted []string
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodDelete {
			deleted = append(deleted, request.URL.Path)
		}
		_, _ = fmt.Fprintf(writer, `{"kind":"VolumeAttachmentList","apiVersion":"storage.k8s.io/v1","items":[
			{"metadata":{"name":"csi-1","uid":"1","labels":{%[1]q:%[2]q}},"spec":{"nodeName":"node-of-others"}},
			{"metadata":{"name":"csi-2","uid":"2","labels":{%[1]q:%[2]q}},"spec":{"nodeName":"node-%[2]s-x7k2p9"}}]}`, RunLabel, ownRun)
	})

	_, response := client.RemoveEach(t.Context(), Collection{
		Resource: storagev1.SchemeGroupVersion.WithResource("volumeattachments"), Kind: "VolumeAttachment",
	}, ownSelector, Removal{})

	g.Expect(response.Err).NotTo(HaveOccurred())
	g.Expect(deleted).To(Equal([]string{"/apis/storage.k8s.io/v1/volumeattachments/csi-2"}))
}

func TestRemoveFinalizers(t *testing.T) {
	const foreign, collector = "cloud.example.com/free", metav1.FinalizerDeleteDependents
	for name, test := range map[string]struct {
		removal Removal
		kept    []any
	}{
		"where all controllers are at work": {Removal{}, []any{foreign, collector}},
		"where no collector is":             {Removal{Absent: features("gc")}, []any{foreign}},
		"where no other controllers are":    {Removal{Absent: features("kcm")}, []any{foreign, collector}},
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
				_, _ = fmt.Fprintf(writer, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"dcb2c4d5f6-1","uid":"1","resourceVersion":%q,
					"finalizers":[%q,%q,%q]}}`, version, Hold, foreign, collector)
			})
			object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
			object.SetUID("1")
			object.SetResourceVersion("7")
			object.SetFinalizers([]string{Hold})

			client.RemoveFinalizers(t.Context(), object, test.removal)

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

func TestRemoval_PodGrace(t *testing.T) {
	g := NewWithT(t)
	pod := in("dcb2c4d5f6-1", fixtures.GhostBoundPod("pod"))
	g.Expect(Removal{}.optionsFor(pod).GracePeriodSeconds).To(HaveValue(BeZero()), "no kubelet has seen it")
	pod.Object["status"] = map[string]any{"startTime": "2026-01-01T00:00:00Z"}
	g.Expect(Removal{}.optionsFor(pod).GracePeriodSeconds).To(BeNil())
	overdue := Removal{Overdue: func(*Object) bool { return true }}
	g.Expect(overdue.optionsFor(pod).GracePeriodSeconds).To(HaveValue(BeZero()))
}

func features(names ...v1alpha1.Feature) []v1alpha1.Feature { return names }

func TestGuard_CreateNamed_ByTwoWorkers(t *testing.T) {
	g := NewWithT(t)
	var creates atomic.Int32
	config, _ := apiservertest.Start(t, func(writer http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost && creates.Add(1) > 1 {
			writer.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)
			return
		}
		_, _ = fmt.Fprint(writer, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"created","namespace":"shared","uid":"u1"}}`)
	})
	client, err := New(config, NewGuard(ownRun))
	g.Expect(err).NotTo(HaveOccurred())
	first := client.CreateNamed(t.Context(), in("shared", fixtures.ConfigMap("created")))
	g.Expect(first.Err).NotTo(HaveOccurred())
	second := client.CreateNamed(t.Context(), in("shared", fixtures.ConfigMap("created")))
	g.Expect(apierrors.IsAlreadyExists(second.Err)).To(BeTrue(), fmt.Sprint(second.Err))

	collection, err := client.CollectionOf(first.Object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.Owns(collection, first.Object)).To(BeTrue(), "the run must delete it")
}
