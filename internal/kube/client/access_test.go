package client

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestRequest_Attributes(t *testing.T) {
	configMap, pod := in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), in("dcb2c4d5f6-1", fixtures.UnscheduledPod("p"))
	for _, test := range []struct {
		name string
		send func(*Client) Response
		want *authorizationv1.ResourceAttributes
		// words describe the permission.
		words string
	}{
		{
			"create", func(c *Client) Response { return c.Create(t.Context(), configMap) },
			&authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: "dcb2c4d5f6-1"},
			`create configmaps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"get", func(c *Client) Response { return c.Get(t.Context(), configMap) },
			&authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: "dcb2c4d5f6-1", Name: "c"},
			`get configmaps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"list", func(c *Client) Response { return c.Send(t.Context(), listOf(configMaps)) },
			&authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: "dcb2c4d5f6-1"},
			`list configmaps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"update", func(c *Client) Response { return c.Update(t.Context(), configMap, "") },
			&authorizationv1.ResourceAttributes{Verb: "update", Resource: "configmaps", Namespace: "dcb2c4d5f6-1", Name: "c"},
			`update configmaps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"patch of a subresource",
			func(c *Client) Response {
				return c.Patch(t.Context(), pod, types.MergePatchType, map[string]any{}, "status")
			},
			&authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "dcb2c4d5f6-1", Name: "p"},
			`patch pods/status in namespace "dcb2c4d5f6-1"`,
		},
		{
			"post to a subresource",
			func(c *Client) Response {
				return c.Do(t.Context(), pod, Request{Method: http.MethodPost, Subresource: "eviction"})
			},
			&authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "dcb2c4d5f6-1", Name: "p"},
			`create pods/eviction in namespace "dcb2c4d5f6-1"`,
		},
		{
			"delete", func(c *Client) Response { return c.Delete(t.Context(), pod, metav1.DeleteOptions{}) },
			&authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: "dcb2c4d5f6-1", Name: "p"},
			`delete pods in namespace "dcb2c4d5f6-1"`,
		},
		{
			"deletecollection",
			func(c *Client) Response {
				return c.DeleteCollection(t.Context(), configMaps, Request{Query: url.Values{}})
			},
			&authorizationv1.ResourceAttributes{Verb: "deletecollection", Resource: "configmaps", Namespace: "dcb2c4d5f6-1"},
			`deletecollection configmaps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"of a group, in a namespace", func(c *Client) Response { return c.Get(t.Context(), in("dcb2c4d5f6-1", fixtures.ReplicaSet("r"))) },
			&authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "replicasets", Namespace: "dcb2c4d5f6-1", Name: "r"},
			`get replicasets.apps in namespace "dcb2c4d5f6-1"`,
		},
		{
			"cluster-scoped", func(c *Client) Response { return c.Get(t.Context(), fixtures.CustomResourceDefinition("example.io")) },
			&authorizationv1.ResourceAttributes{
				Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "things.example.io",
			},
			"get customresourcedefinitions.apiextensions.k8s.io",
		},
		{
			"about no object", func(c *Client) Response {
				return c.Send(t.Context(), Request{Method: http.MethodGet, Path: "/version"})
			}, nil, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			client, _ := asking(t, answering(http.StatusForbidden, ""))
			got := test.send(client).sent.attributes()
			g.Expect(got).To(Equal(test.want))
			if got != nil {
				g.Expect(Permission(*got)).To(Equal(test.words))
			}
		})
	}
}

// listOf returns a request for a whole collection.
func listOf(collection Collection) Request {
	return Request{Method: http.MethodGet, Path: collection.path(), Object: collection.reference()}
}

// authorizing returns a client of a server that rejects all requests except access reviews. It denies some permissions, and fails reviews
// of unknown ones.
func authorizing(t *testing.T, denied []string, unknown ...string) *Client {
	t.Helper()
	client, _ := asking(t, func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
			writer.WriteHeader(http.StatusForbidden)
			return
		}
		review := authorizationv1.SelfSubjectAccessReview{}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			t.Errorf("read a review: %v", err)
		}
		permission := Permission(*review.Spec.ResourceAttributes)
		if slices.Contains(unknown, permission) {
			writer.WriteHeader(http.StatusInternalServerError)
			return
		}
		review.Status.Allowed = !slices.Contains(denied, permission)
		_ = json.NewEncoder(writer).Encode(review)
	})
	return client
}

func TestMissingPermission(t *testing.T) {
	t.Parallel()
	const create, finalize = `create configmaps in namespace "dcb2c4d5f6-1"`, `update replicasets/finalizers.apps in namespace "dcb2c4d5f6-1"`
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner", UID: "u"}
	blocking, stranger := owner, owner
	blocking.BlockOwnerDeletion = new(true)
	stranger.Kind, stranger.BlockOwnerDeletion = "Stranger", new(true)
	for _, test := range []struct {
		name            string
		owners          []metav1.OwnerReference
		denied, unknown []string
		want            string
	}{
		{"the authorizer denies it", nil, []string{create}, nil, create},
		{"the authorizer allows it: it was admission", nil, nil, nil, ""},
		{"the authorizer does not answer", nil, nil, []string{create}, ""},
		{"blocking an owner", []metav1.OwnerReference{blocking}, []string{finalize}, nil, finalize},
		{"to block the second owner's deletion", []metav1.OwnerReference{owner, blocking}, []string{finalize}, nil, finalize},
		{"the permission of the request comes first", []metav1.OwnerReference{blocking}, []string{create, finalize}, nil, create},
		{"an owner's deletion may be blocked", []metav1.OwnerReference{blocking}, nil, nil, ""},
		{"an owner's deletion is not blocked", []metav1.OwnerReference{owner}, []string{finalize}, nil, ""},
		{"an owner of a kind nobody serves", []metav1.OwnerReference{stranger}, []string{finalize}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			client := authorizing(t, test.denied, test.unknown...)
			object := in("dcb2c4d5f6-1", fixtures.ConfigMap("c"))
			object.SetOwnerReferences(test.owners)
			refused := client.Create(t.Context(), object)
			g.Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
			g.Expect(client.MissingPermission(t.Context(), refused)).To(Equal(test.want))
		})
	}
}

func TestMissingPermission_PatchedReferences(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	const finalize = `update configmaps/finalizers in namespace "dcb2c4d5f6-1"`
	client := authorizing(t, []string{finalize})
	blocking := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u", BlockOwnerDeletion: new(true)}
	patch := map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{blocking}}}

	refused := client.Patch(t.Context(), in("dcb2c4d5f6-1", fixtures.ConfigMap("c")), types.MergePatchType, patch, "")

	g.Expect(refused.StatusCode).To(Equal(http.StatusForbidden))
	g.Expect(client.MissingPermission(t.Context(), refused)).To(Equal(finalize))
}

func TestMissingPermission_NoObject(t *testing.T) {
	client := authorizing(t, nil)
	refused := client.Send(t.Context(), Request{Method: http.MethodGet, Path: "/version"})
	NewWithT(t).Expect(client.MissingPermission(t.Context(), refused)).To(BeEmpty())
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	attributes := func(verb string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Resource: "pods"}
	}
	client := authorizing(t, []string{"delete pods"}, "watch pods")
	g.Expect(client.Allowed(t.Context(), attributes("list"))).To(BeTrue())
	g.Expect(client.Allowed(t.Context(), attributes("delete"))).To(BeFalse())
	_, err := client.Allowed(t.Context(), attributes("watch"))
	g.Expect(err).To(MatchError(ContainSubstring("check the permission to watch pods")))
}

func TestWhoAmI(t *testing.T) {
	g := NewWithT(t)
	client, _ := asking(t, answering(http.StatusCreated, `{"status":{"userInfo":{"username":"eve"}}}`))
	g.Expect(client.WhoAmI(t.Context())).To(Equal("eve"))

	client, _ = asking(t, answering(http.StatusForbidden, ""))
	_, err := client.WhoAmI(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("read the user of the credentials")))
}
