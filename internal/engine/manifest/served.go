package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/deletion-conformance/deletion-conformance/internal/sys/suggest"
)

// alternatives describes what the server serves instead of a missing resource or version.
func (f *Finder) alternatives(resource, version string) string {
	const all = "`kubectl api-resources` lists the available ones"
	if known, err := f.mapper.ResourcesFor(schema.ParseGroupResource(resource).WithVersion("")); err == nil && version != "" {
		var versions []string
		for _, one := range known {
			if one.GroupResource() == known[0].GroupResource() {
				versions = append(versions, one.Version)
			}
		}
		return fmt.Sprintf("%s is served in %s", known[0].GroupResource(), strings.Join(versions, ", "))
	}
	served, err := f.Served()
	if err != nil && served == nil {
		return all
	}
	var names []string
	for _, mapping := range served {
		names = append(names, mapping.Resource.GroupResource().String(), mapping.Resource.Resource)
	}
	return all + suggest.Hint(resource, names)
}

// Served returns all resources that the server serves, in the version that it prefers, ordered by name. The error names groups whose
// discovery fails; the resources of the others are returned with it.
func (f *Finder) Served() ([]*meta.RESTMapping, error) {
	lists, err := f.client.Discovery().ServerPreferredResources()
	unknown := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &unknown) {
		return nil, fmt.Errorf("discover the resources of the server: %w", err)
	}
	var served []*meta.RESTMapping
	for _, list := range lists {
		of, parsed := schema.ParseGroupVersion(list.GroupVersion)
		if parsed != nil {
			return nil, fmt.Errorf("discover the resources of the server: %w", parsed)
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
