package framework

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// In a collection with objects of others, a deletecollection must have a selector. Kubernetes' API server honors selectors for everything
// that it stores. An aggregated API server may not; behaviors must not find that out with objects of others.

// hasOthers reports whether a collection may contain objects that the run did not create.
func (c *Cluster) hasOthers(collection client.Collection) bool {
	return collection.Namespace == "" || c.session.Shared
}

// guardCollection skips the spec when a deletecollection would delete objects of others if the server ignored selectors.
func (c *Cluster) guardCollection(ctx context.Context, collection client.Collection) {
	ginkgo.GinkgoHelper()
	if !c.hasOthers(collection) || scheme.Scheme.IsGroupRegistered(collection.Resource.Group) {
		return
	}
	server := c.aggregated(ctx, collection.Resource.GroupVersion())
	if server == "" {
		return
	}
	others, response := c.session.Harness.List(ctx, collection, client.RunLabel+"!="+c.session.Run)
	Require(c.Check(ctx, response))
	if len(others) > 0 {
		ginkgo.Skip(fmt.Sprintf("%s serves %s, and the collection contains objects of other users: if the server ignored selectors, a deletecollection would delete them",
			server, collection.Resource.GroupResource()))
	}
}

// aggregated describes the aggregated API server of a group version; empty when Kubernetes serves it.
func (c *Cluster) aggregated(ctx context.Context, version schema.GroupVersion) string {
	ginkgo.GinkgoHelper()
	name := version.Version + "." + version.Group
	response := c.session.Harness.Send(ctx, client.Request{
		Method: http.MethodGet, Path: "/apis/apiregistration.k8s.io/v1/apiservices/" + name,
	})
	switch {
	case apierrors.IsNotFound(response.Err):
		return ""
	case apierrors.IsForbidden(response.Err):
		return fmt.Sprintf("an unknown server (missing permission: get APIService %s)", name)
	}
	if Require(c.Check(ctx, response)).Object == nil {
		return fmt.Sprintf("an unknown server (APIService %s names none)", name)
	}
	service, passedOn, _ := unstructured.NestedMap(response.Object.Object, "spec", "service")
	if !passedOn {
		return ""
	}
	return fmt.Sprintf("the API server of service %v/%v", service["namespace"], service["name"])
}
