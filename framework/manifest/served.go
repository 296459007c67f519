package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Served returns all resources that the server serves, in the version that it prefers, ordered by name. The error names groups whose
// discovery fails; the resources of the others are returned with it.
func (f *Finder) Served() ([]*meta.RESTMapping, error) {
	lists, err := f.client.Discovery().ServerPreferredResources()
	unknown := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &unknown) {
		return nil, fmt.Errorf("find out what the server serves: %w", err)
	}
	var served []*meta.RESTMapping
	for _, list := range lists {
		of, parsed := schema.ParseGroupVersion(list.GroupVersion)
		if parsed != nil {
			return nil, fmt.Errorf("find out what the server serves: %w", parsed)
		}
		for _, resource := range list.APIResources {
			scope := meta.RESTScope(meta.RESTScopeRoot)
			if resource.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			served = append(served, &meta.RESTMapping{
				Resource: of.WithResource(resource.Name), GroupVersionKind: of.WithKind(resource.Kind), Scope: scope,
			})
		}
	}
	slices.SortFunc(served, func(a, b *meta.RESTMapping) int {
		return strings.Compare(a.Resource.GroupResource().String(), b.Resource.GroupResource().String())
	})
	return served, err
}
