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

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// A collection that is not the run's own is deleted from with a selector only. Kubernetes' API server follows those for
// everything that it stores itself; whether another does that it passes requests on to (aggregation) is what behaviors
// are to find out, but not with what others have there.

// hasOthers says that a collection may have objects in it that are not the run's.
func (c *Cluster) hasOthers(collection client.Collection) bool {
	return collection.Namespace == "" || c.session.Shared
}

// guardCollection skips the spec where the delete of a collection would take what others have in it if the server ignored
// selectors.
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
		ginkgo.Skip(fmt.Sprintf("%s serves %s, and others have some: if it ignored selectors, the delete of a collection would take those, too",
			server, collection.Resource.GroupResource()))
	}
}

// aggregated is the API server that a version of a group is passed on to, in the words of a message; empty where
// Kubernetes' own serves it.
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
		return fmt.Sprintf("a server that the credentials do not allow to know (get APIService %s)", name)
	}
	if Require(c.Check(ctx, response)).Object == nil {
		return fmt.Sprintf("a server that nobody knows (get APIService %s is answered without one)", name)
	}
	service, passedOn, _ := unstructured.NestedMap(response.Object.Object, "spec", "service")
	if !passedOn {
		return ""
	}
	return fmt.Sprintf("the API server of service %v/%v", service["namespace"], service["name"])
}
