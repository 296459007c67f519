package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Collection is all objects of a kind, in one namespace where the kind is namespaced.
type Collection struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is empty for cluster-scoped kinds.
	Namespace string
}

// Namespaces is the collection of all namespaces.
var Namespaces = Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// Nodes is the collection of all nodes.
var Nodes = Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node"}

// Definitions is the collection of all CustomResourceDefinitions.
var Definitions = Collection{
	Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind:     "CustomResourceDefinition",
}

// CollectionOf returns the collection of an object, which need not exist. It fails when the server does not serve the kind.
func (c *Client) CollectionOf(object *Object) (Collection, error) {
	mapping, err := c.Mapping(object)
	if err != nil {
		return Collection{}, err
	}
	collection := Collection{Resource: mapping.Resource, Kind: mapping.GroupVersionKind.Kind}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		collection.Namespace = object.GetNamespace()
	}
	return collection, nil
}

// path is the path of the collection's endpoint.
func (c Collection) path() string {
	path := []string{"/apis", c.Resource.Group, c.Resource.Version}
	if c.Resource.Group == "" {
		path = []string{"/api", c.Resource.Version}
	}
	if c.Namespace != "" {
		path = append(path, "namespaces", c.Namespace)
	}
	return strings.Join(append(path, c.Resource.Resource), "/")
}

// reference names the collection in records of requests.
func (c Collection) reference() *v1alpha1.ObjectReference {
	return &v1alpha1.ObjectReference{
		Group: c.Resource.Group, Version: c.Resource.Version, Resource: c.Resource.Resource, Kind: c.Kind, Namespace: c.Namespace,
	}
}

// referenceTo names an object of the collection.
func (c Collection) referenceTo(object *Object) *v1alpha1.ObjectReference {
	reference := c.reference()
	reference.Name, reference.UID, reference.Canary = object.GetName(), object.GetUID(), IsCanary(object)
	return reference
}

// selecting returns the query for a label selector.
func selecting(selector string) url.Values { return url.Values{"labelSelector": {selector}} }

// List reads the objects of a collection that a label selector matches. It filters the response, because a server may ignore selectors.
func (c *Client) List(ctx context.Context, collection Collection, selector string) ([]*Object, Response) {
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil, Response{Request: "list " + collection.Resource.Resource, Err: err}
	}
	objects, _, response := c.Page(ctx, collection, selecting(selector))
	return slices.DeleteFunc(objects, func(object *Object) bool { return !matching.Matches(labels.Set(object.GetLabels())) }), response
}

// ListFields reads the objects of a collection that a field selector matches.
func (c *Client) ListFields(ctx context.Context, collection Collection, selector string) ([]*Object, Response) {
	objects, _, response := c.Page(ctx, collection, url.Values{"fieldSelector": {selector}})
	return objects, response
}

// Page reads objects of a collection and sets the kind of each, which a list response contains only once. With a limit in the query, next
// is the continue token of the next page; it is empty on the last page.
func (c *Client) Page(ctx context.Context, collection Collection, query url.Values) (objects []*Object, next string, response Response) {
	return c.Send(ctx, Request{Method: http.MethodGet, Path: collection.path(), Object: collection.reference(), Query: query}).page()
}

// Pages reads a collection by pages, whose size the query limits, until the last one or a failure.
func (c *Client) Pages(ctx context.Context, collection Collection, query url.Values) iter.Seq2[[]*Object, Response] {
	return func(yield func([]*Object, Response) bool) {
		query := maps.Clone(query)
		for next := "first"; next != ""; query.Set("continue", next) {
			var page []*Object
			var response Response
			if page, next, response = c.Page(ctx, collection, query); !yield(page, response) {
				return
			}
		}
	}
}

func (r Response) page() (objects []*Object, next string, response Response) {
	response = r
	if response.Err != nil {
		return nil, "", response
	}
	if response.Object == nil || !response.Object.IsList() {
		response.Err = fmt.Errorf("%s: the response is not a list", response.Request)
		return nil, "", response
	}
	list, err := response.Object.ToList()
	if err != nil {
		response.Err = fmt.Errorf("%s: the response is not a list: %w", response.Request, err)
		return nil, "", response
	}
	objects = make([]*Object, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
		objects[i].SetAPIVersion(list.GetAPIVersion())
		objects[i].SetKind(strings.TrimSuffix(list.GetKind(), "List"))
	}
	return objects, list.GetContinue(), response
}

// ResourceVersion returns the current resourceVersion of a collection. Later events have later ones.
func (c *Client) ResourceVersion(ctx context.Context, collection Collection, selector string) (string, Response) {
	query := selecting(selector)
	query.Set("limit", "1")
	response := c.Send(ctx, Request{Method: http.MethodGet, Path: collection.path(), Object: collection.reference(), Query: query})
	if response.Err != nil {
		return "", response
	}
	if response.Object == nil {
		response.Err = fmt.Errorf("%s: the response is not a list", response.Request)
		return "", response
	}
	return response.Object.GetResourceVersion(), response
}

// DeleteCollection deletes the objects of a collection that the query of a request selects.
func (c *Client) DeleteCollection(ctx context.Context, collection Collection, request Request) Response {
	request.Method, request.Path, request.Object = http.MethodDelete, collection.path(), collection.reference()
	return c.Send(ctx, request)
}

// Watch starts one watch of a collection. The response is set only when the request failed.
func (c *Client) Watch(ctx context.Context, collection Collection, options metav1.ListOptions) (watch.Interface, Response) {
	events, err := c.dynamic.Resource(collection.Resource).Namespace(collection.Namespace).Watch(ctx, options)
	if err == nil {
		return events, Response{}
	}
	request := Request{
		Method: http.MethodGet, Path: collection.path(), Object: collection.reference(), Query: url.Values{"watch": {"true"}},
	}
	response := Response{Request: "watch " + collection.Resource.Resource, Err: err, sent: request}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		response.StatusCode = int(status.Status().Code)
	}
	return nil, response
}

// Removable returns the collections whose objects can be listed and deleted: those of a namespace or, with an empty namespace,
// cluster-scoped ones. Kinds that are being removed remain patchable even when discovery no longer lists that verb. Groups that discovery
// cannot describe are left out; Removable fails when there are no others.
func (c *Client) Removable(namespace string) ([]Collection, error) {
	lists, err := discovery.ServerPreferredResources(c.discovery)
	if len(lists) == 0 && err != nil {
		return nil, fmt.Errorf("discover the resources of the server: %w", err)
	}
	can := discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}
	var collections []Collection
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover the resources of the server: %w", err)
		}
		for _, resource := range list.APIResources {
			if resource.Namespaced == (namespace != "") && can.Match(list.GroupVersion, &resource) {
				collections = append(collections, Collection{
					Resource: version.WithResource(resource.Name), Kind: resource.Kind, Namespace: namespace,
				})
			}
		}
	}
	return collections, nil
}

// UnavailableAPIServices returns the APIServices of the group versions that the server lists but cannot describe.
func (c *Client) UnavailableAPIServices() []string {
	_, err := discovery.ServerPreferredResources(c.discovery)
	failed := (*discovery.ErrGroupDiscoveryFailed)(nil)
	if !errors.As(err, &failed) {
		return nil
	}
	var services []string
	for version := range failed.Groups {
		services = append(services, version.Version+"."+version.Group)
	}
	slices.Sort(services)
	return services
}

// HasSubresource reports whether the objects of a collection have a subresource.
func (c *Client) HasSubresource(collection Collection, name string) (bool, error) {
	served, err := c.discovery.ServerResourcesForGroupVersion(collection.Resource.GroupVersion().String())
	if err != nil {
		return false, fmt.Errorf("discover the resources of %s: %w", collection.Resource.GroupVersion(), err)
	}
	return slices.ContainsFunc(served.APIResources, func(resource metav1.APIResource) bool {
		return resource.Name == collection.Resource.Resource+"/"+name
	}), nil
}

// Distinct removes duplicates.
func Distinct(collections []Collection) []Collection {
	var distinct []Collection
	for _, collection := range collections {
		if !slices.Contains(distinct, collection) {
			distinct = append(distinct, collection)
		}
	}
	return distinct
}

// DiscoveryFailures describes the registered API versions that cannot be discovered because the servers behind them do not respond.
func (c *Client) DiscoveryFailures() ([]string, error) {
	_, _, err := c.discovery.ServerGroupsAndResources()
	failed := &discovery.ErrGroupDiscoveryFailed{}
	switch {
	case errors.As(err, &failed):
		var failures []string
		for version, reason := range failed.Groups {
			failures = append(failures, fmt.Sprintf("API %q cannot be discovered (%v)", version, reason))
		}
		slices.Sort(failures)
		return failures, nil
	case err != nil:
		return nil, fmt.Errorf("discover the resources of the server: %w", err)
	}
	return nil, nil
}

// ServesGroup reports whether the server serves an API group.
func (c *Client) ServesGroup(name string) bool {
	groups, err := c.discovery.ServerGroups()
	return err == nil && slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == name })
}
