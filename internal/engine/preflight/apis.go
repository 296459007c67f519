package preflight

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// The namespace controller deletes a namespace's content kind by kind. While an APIService is unavailable it cannot discover all kinds, and
// no namespace of the cluster can be deleted.
// It also lists every resource of the namespace. While the objects of a custom resource cannot be converted, the API server has no cache of
// them and returns 429 to each list, even for empty namespaces: deleting a namespace then takes a minute or more.

var apiServices = client.Collection{
	Resource: schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, Kind: "APIService",
}

// maxParallelAPIServices is the page size for APIServices. A cluster has one for each version of an API group.
const maxParallelAPIServices = "500"

// UnavailableAPIs describes the registered APIs that do not respond. If the credentials may not list APIServices it uses discovery.
func UnavailableAPIs(ctx context.Context, with *client.Client) ([]string, error) {
	var unavailable []string
	for page, response := range with.Pages(ctx, apiServices, url.Values{"limit": {maxParallelAPIServices}}) {
		switch {
		case apierrors.IsForbidden(response.Err):
			return with.DiscoveryFailures()
		case apierrors.IsNotFound(response.Err):
			return nil, nil // a server without aggregation
		case response.Err != nil:
			return nil, fmt.Errorf("list APIServices: %w", response.Err)
		}
		for _, service := range page {
			if reason := unavailableReason(service); reason != "" {
				unavailable = append(unavailable, fmt.Sprintf("APIService %q is unavailable (%s)", service.GetName(), reason))
			}
		}
	}
	slices.Sort(unavailable)
	return unavailable, nil
}

// unavailableReason returns why an APIService is unavailable; empty when it is available.
func unavailableReason(service *client.Object) string {
	for _, condition := range describe.Conditions(service) {
		if condition.Type == "Available" && condition.Status == metav1.ConditionFalse {
			return strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
		}
	}
	return ""
}

// maxParallelDefinitions is the page size for CustomResourceDefinitions, whose schemas are large.
const maxParallelDefinitions = "25"

// listTime limits a list in a namespace without objects of the resource, including retries.
const listTime = 3 * time.Second

// unreadableResources describes the custom resources with a conversion webhook that cannot be listed in the run's namespace. It returns
// none when the credentials may not list CustomResourceDefinitions or the resource.
func unreadableResources(ctx context.Context, t Target) ([]string, error) {
	var unreadable []string
	for page, response := range t.Client.Pages(ctx, client.Definitions, url.Values{"limit": {maxParallelDefinitions}}) {
		if apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) {
			return nil, nil
		}
		if response.Err != nil {
			return nil, fmt.Errorf("list CustomResourceDefinitions: %w", response.Err)
		}
		for _, definition := range page {
			if reason := unreadableReason(ctx, t, definition); reason != "" {
				unreadable = append(unreadable, fmt.Sprintf("%s cannot be listed (%s)", definition.GetName(), reason))
			}
		}
	}
	slices.Sort(unreadable)
	return unreadable, ctx.Err()
}

// unreadableReason returns why a resource with a conversion webhook cannot be listed; empty for all others.
func unreadableReason(ctx context.Context, t Target, definition *client.Object) string {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	if strategy != "Webhook" || scope != "Namespaced" {
		return ""
	}
	for _, collection := range client.ServedCollections(definition, t.Namespace) {
		limited, cancel := context.WithTimeout(ctx, t.Slowed(listTime))
		_, _, response := t.Client.Page(limited, collection, url.Values{"limit": {"1"}})
		cancel()
		if response.Err != nil && !apierrors.IsForbidden(response.Err) && !apierrors.IsNotFound(response.Err) {
			return response.Message()
		}
	}
	return ""
}

// apis are the APIs that keep the cluster's namespaces. They are determined when they are first needed.
type apis struct {
	// unavailable are those that do not respond, and unreadable the custom resources that cannot be listed.
	unavailable, unreadable func() ([]string, error)
}

func apisOf(ctx context.Context, t Target) apis {
	return apis{
		unavailable: sync.OnceValues(func() ([]string, error) { return UnavailableAPIs(ctx, t.Client) }),
		unreadable:  sync.OnceValues(func() ([]string, error) { return unreadableResources(ctx, t) }),
	}
}

// check reports registered APIs that do not respond.
func (a apis) check(context.Context, Target) (v1alpha1.Finding, error) {
	unavailable, err := a.unavailable()
	if err != nil {
		return v1alpha1.Finding{}, err
	}
	unreadable, err := a.unreadable()
	if err != nil {
		return v1alpha1.Finding{}, err
	}
	switch {
	case len(unavailable) > 0:
		return v1alpha1.Finding{
			Check: apiServicesCheck, Severity: v1alpha1.Notice, Cause: strings.Join(unavailable, "; "),
			Effect: "no namespace of the cluster can be deleted, including those of this run", Remedy: apiServiceRemedy,
		}, nil
	case len(unreadable) > 0:
		return v1alpha1.Finding{
			Check: apiServicesCheck, Severity: v1alpha1.Notice, Cause: strings.Join(unreadable, "; "),
			Effect: "namespaces of the cluster are deleted slowly", Remedy: conversionRemedy,
		}, nil
	}
	return v1alpha1.Finding{Check: apiServicesCheck, Severity: v1alpha1.OK, Cause: "all APIs respond"}, nil
}

// apiServiceRemedy is the remedy for an unavailable APIService.
const apiServiceRemedy = "repair or delete the APIService, or use --namespace"

// conversionRemedy is the remedy for a custom resource whose objects cannot be converted.
const conversionRemedy = "repair the conversion webhook of the CustomResourceDefinition"

// probeNamespaces checks whether specs may create namespaces, and whether these can be deleted.
func (a apis) probeNamespaces(ctx context.Context, t Target) error {
	if err := mayCreate("namespaces", "")(ctx, t); err != nil {
		return err
	}
	unreadable, err := a.unreadable()
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		return skipReason{apiServicesCheck, "namespaces are deleted slowly: " + strings.Join(unreadable, "; "), conversionRemedy}
	}
	unavailable, err := a.unavailable()
	if err != nil || len(unavailable) == 0 {
		return err
	}
	return skipReason{apiServicesCheck, "no namespace can be deleted: " + strings.Join(unavailable, "; "), apiServiceRemedy}
}
