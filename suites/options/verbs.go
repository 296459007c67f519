package options

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

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

	// each expects an answer of each resource. Others may remove or change the definition of a resource meanwhile.
	each := func(ctx SpecContext, answers func(servedResource) error) {
		GinkgoHelper()
		for _, resource := range served(cluster) {
			if answers(resource) == nil {
				continue
			}
			Eventually(ctx, func() error {
				cluster.Session().Client.Rediscover()
				now := served(cluster)
				at := slices.IndexFunc(now, func(other servedResource) bool { return other.name == resource.name })
				if at < 0 {
					return nil
				}
				return answers(now[at])
			}).WithPolling(rediscoveryPolling).Should(Succeed(), resource.name)
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
			each(ctx, func(resource servedResource) error {
				return resource.answers(cluster.TryDelete(ctx, resource.absent, DryRunTwice))
			})
		})

	Specify("A resource for which discovery does not list the verb deletecollection must refuse a deletecollection with 405 or 404, and other "+
		"resources must accept it.",
		Behavior("options.discovery-lists-deletecollection", Core, Admin, Source(apiConventions), Promise(unsupported)), func(ctx SpecContext) {
			each(ctx, func(resource servedResource) error {
				if !resource.builtIn || resource.absent.GetNamespace() == "" { // where a server that ignores all options could delete objects of others
					return nil
				}
				return resource.answersCollection(cluster.TryDeleteCollection(ctx, resource.absent, DryRunTwice,
					WithFieldSelector("metadata.name="+resource.absent.GetName())))
			})
		})
})

// rediscoveryPolling is the interval for reading discovery again.
const rediscoveryPolling = time.Second

// servedResource is a resource that a server serves.
type servedResource struct {
	name string
	// absent is an object of it that does not exist.
	absent *Object
	// deletable and sweepable report whether discovery lists the verbs delete and deletecollection.
	deletable, sweepable bool
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
			// The names of some kinds end with a group. The run's id shows that none of another's is meant.
			absent := &Object{Object: map[string]any{"metadata": map[string]any{"name": "absent-" + cluster.Session().Run + "." + cluster.Group()}}}
			absent.SetAPIVersion(list.GroupVersion)
			absent.SetKind(resource.Kind)
			if resource.Namespaced {
				absent.SetNamespace(cluster.Namespace())
			}
			resources = append(resources, servedResource{
				name: resource.Name + " of " + list.GroupVersion, absent: absent, deletable: slices.Contains(resource.Verbs, "delete"),
				sweepable: slices.Contains(resource.Verbs, "deletecollection"), builtIn: scheme.Scheme.IsGroupRegistered(absent.GroupVersionKind().Group),
			})
		}
	}
	return resources
}

// answers returns an error if the response to a delete of the absent object does not fit what discovery lists.
func (r servedResource) answers(response Response) error {
	missing := missingIn(response)
	switch {
	case r.deletable && (response.StatusCode != http.StatusNotFound || r.builtIn && missing != r.absent.GetName()):
		return fmt.Errorf("the verb delete is listed, but the response is not 404 for the absent object: %s", response.Message())
	case !r.deletable && (response.StatusCode != http.StatusMethodNotAllowed && response.StatusCode != http.StatusNotFound || r.builtIn && missing != ""):
		return fmt.Errorf("the verb delete is not listed, but the response is not 405 or 404: %d %s", response.StatusCode, response.Message())
	}
	return nil
}

// answersCollection returns an error if the response to a deletecollection that selects nothing does not fit what discovery lists.
func (r servedResource) answersCollection(response Response) error {
	refused := response.StatusCode == http.StatusMethodNotAllowed || response.StatusCode == http.StatusNotFound
	switch {
	case r.sweepable && response.Err != nil:
		return fmt.Errorf("the verb deletecollection is listed, but a deletecollection is refused: %s", response.Message())
	case !r.sweepable && !refused:
		return fmt.Errorf("the verb deletecollection is not listed, but the response is not 405 or 404: %d %s", response.StatusCode, response.Message())
	}
	return nil
}

// missingIn returns the name of the object that is missing according to a response, or nothing if the response names none.
func missingIn(response Response) string {
	status := metav1.Status{}
	if json.Unmarshal(response.Body, &status) != nil || status.Details == nil {
		return ""
	}
	return status.Details.Name
}
