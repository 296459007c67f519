package options

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	. "github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/definitions"
)

const (
	// apiConventions are the conventions of the API, and unsupported is their sentence about status 405.
	apiConventions = "api-conventions"
	unsupported    = "Indicates that the action the client attempted to perform on the resource was not supported by the code."
)

var _ = Describe("Verbs", func() {
	cluster := UseCluster()

	// beKept expects the subresources of an object not to be deletable, and the object to remain.
	beKept := func(ctx SpecContext, object *Object, subresources ...string) {
		GinkgoHelper()
		for _, subresource := range subresources {
			served, err := cluster.Session().Client.HasSubresource(cluster.CollectionOf(ctx, object), subresource)
			Expect(err).NotTo(HaveOccurred())
			refused := HaveStatusCode(http.StatusNotFound)
			if served {
				refused = HaveStatusCode(http.StatusMethodNotAllowed)
			}
			Expect(cluster.Send(ctx, object, Request{Method: http.MethodDelete, Subresource: subresource})).To(refused)
			Expect(cluster.Get(ctx, object)).To(And(BeSameObjectAs(object), Not(BeTerminating())))
		}
	}

	Specify("A DELETE of a subresource such as status or scale must be refused with 405 and must not delete the object.",
		Behavior("options.subresources-cannot-be-deleted", Core, AnyResource, Source(apiConventions), Promise(unsupported)), func(ctx SpecContext) {
			for _, kind := range cluster.Served(ctx, fixtures.ConfigMap, fixtures.ReplicaSet, fixtures.GhostBoundPod) {
				beKept(ctx, cluster.Create(ctx, kind("object")), "status", "scale", "ephemeralcontainers")
			}
		})

	Specify("A DELETE of the subresources status and scale of a custom resource must be refused with 405 and must not delete the object.",
		Behavior("options.custom-subresources-cannot-be-deleted", Core, CRD, Source(apiConventions), Promise(unsupported)), func(ctx SpecContext) {
			definition := fixtures.CustomResourceDefinition(cluster.Group())
			version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			version["subresources"] = map[string]any{"status": map[string]any{}, "scale": map[string]any{
				"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
			}}
			definitions.Create(ctx, cluster, definition)

			beKept(ctx, cluster.Create(ctx, fixtures.CustomResource(cluster.Group(), "object")), "status", "scale")
		})

	Specify("A resource for which discovery does not list the verb delete must refuse a delete with 405 or 404, and other resources must "+
		"answer 404 for an absent object.",
		Behavior("options.discovery-lists-delete", Core, Admin, Source(apiConventions), Promise(unsupported)), func(ctx SpecContext) {
			for _, resource := range served(cluster) {
				absent := cluster.Prepare(ctx, resource.like)
				response := cluster.TryDelete(ctx, absent, DryRunTwice)

				if resource.deletable {
					Expect(response).To(HaveStatusCode(http.StatusNotFound), resource.name)
					if !resource.builtIn {
						continue
					}
					if missingIn(response) == "" {
						cluster.Session().Client.Rediscover()
						cluster.CollectionOf(ctx, absent) // which skips the spec if the resource is no longer served
					}
					Expect(missingIn(response)).To(Equal(absent.GetName()), resource.name)
				} else {
					Expect(response).To(Or(HaveStatusCode(http.StatusMethodNotAllowed), HaveStatusCode(http.StatusNotFound)), resource.name)
					if resource.builtIn {
						Expect(missingIn(response)).To(BeEmpty(), resource.name)
					}
				}
			}
		})
})

// servedResource is a resource that a server serves.
type servedResource struct {
	name string
	// like is an object of it that does not exist.
	like *Object
	// deletable reports whether discovery lists the verb delete.
	deletable bool
	// builtIn reports whether the resource is one of Kubernetes' own. Other servers need not name the object in a response of 404.
	builtIn bool
}

// served are the resources of which the server serves single objects, each in its preferred version.
func served(cluster *Cluster) []servedResource {
	GinkgoHelper()
	lists, err := cluster.Session().Client.Discovery().ServerPreferredResources()
	if len(lists) == 0 {
		Expect(err).NotTo(HaveOccurred()) // else some aggregated API cannot be discovered
	}
	var resources []servedResource
	for _, list := range lists {
		if strings.Contains(list.GroupVersion, cluster.Session().GroupDomain) {
			continue // other specs define and delete these meanwhile
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			// The names of some kinds end with a group.
			like := &Object{Object: map[string]any{"metadata": map[string]any{"name": "absent." + cluster.Group()}}}
			like.SetAPIVersion(list.GroupVersion)
			like.SetKind(resource.Kind)
			resources = append(resources, servedResource{
				name: resource.Name + " of " + list.GroupVersion, like: like, deletable: slices.Contains(resource.Verbs, "delete"),
				builtIn: scheme.Scheme.IsGroupRegistered(like.GroupVersionKind().Group),
			})
		}
	}
	return resources
}

// missingIn returns the name of the object that is missing according to a response, or nothing if the response names none.
func missingIn(response Response) string {
	status := metav1.Status{}
	if json.Unmarshal(response.Body, &status) != nil || status.Details == nil {
		return ""
	}
	return status.Details.Name
}
