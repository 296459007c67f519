package environment

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// The namespace controller lists every resource of a namespace that it deletes. While the objects of a custom resource cannot be converted,
// the API server has no cache of them and returns 429 to each list, even for empty namespaces: deleting a namespace then takes a minute or
// more.

var customResourceDefinitions = client.Collection{
	Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind:     "CustomResourceDefinition",
}

// definitionsAtOnce is the page size for CustomResourceDefinitions, whose schemas are large.
const definitionsAtOnce = "25"

// listTime limits a list in a namespace without objects of the resource, including retries.
const listTime = 3 * time.Second

// unreadableResources describes the custom resources with a conversion webhook that cannot be listed in the run's namespace. It returns
// none when the credentials may not list CustomResourceDefinitions or the resource.
func (e *Environment) unreadableResources(ctx context.Context) ([]string, error) {
	var unreadable []string
	for next, first := "", true; first || next != ""; first = false {
		page, following, response := e.client.Page(ctx, customResourceDefinitions, url.Values{"limit": {definitionsAtOnce}, "continue": {next}})
		if apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) {
			return nil, nil
		}
		if response.Err != nil {
			return nil, fmt.Errorf("list CustomResourceDefinitions: %w", response.Err)
		}
		for _, definition := range page {
			if why := e.whyUnreadable(ctx, definition); why != "" {
				unreadable = append(unreadable, fmt.Sprintf("%s cannot be listed (%s)", definition.GetName(), why))
			}
		}
		next = following
	}
	slices.Sort(unreadable)
	return unreadable, ctx.Err()
}

// whyUnreadable returns why a resource with a conversion webhook cannot be listed; empty for all others.
func (e *Environment) whyUnreadable(ctx context.Context, definition *client.Object) string {
	strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
	scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
	if strategy != "Webhook" || scope != "Namespaced" {
		return ""
	}
	for _, collection := range client.ServedCollections(definition, e.namespaces[0].GetName()) {
		limited, cancel := context.WithTimeout(ctx, e.options.Slowed(listTime))
		_, _, response := e.client.Page(limited, collection, url.Values{"limit": {"1"}})
		cancel()
		if response.Err != nil && !apierrors.IsForbidden(response.Err) && !apierrors.IsNotFound(response.Err) {
			return response.Message()
		}
	}
	return ""
}
