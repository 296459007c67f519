package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework/manifest"
	"github.com/deletion-conformance/deletion-conformance/framework/overlay"
)

// Resources are what a run tests in the place of ConfigMaps.
type Resources struct {
	// Names name them as for kubectl: "widgets.example.com", or with the version, "widgets.example.com/v1".
	Names []string
	// Fixtures are manifests: of the resources, of which otherwise one is derived from what the server publishes of them, and of
	// what must exist before them.
	Fixtures []*unstructured.Unstructured
	// All takes everything else, too, that a server ignores created and deleted, but for what is protected.
	All bool
}

// orNone are the names, or an empty one where there are none.
func (r Resources) orNone() []string {
	if len(r.Names) == 0 {
		return []string{""}
	}
	return r.Names
}

// Columns is how many of them there are on a cluster, at least: ConfigMaps are one, and of all there are several.
func (r Resources) Columns() int {
	if r.All {
		return max(len(r.Names), several)
	}
	return len(r.orNone())
}

// several is more than one.
const several = 2

// mustOffer are the verbs without which nothing of a resource can be tested.
var mustOffer = []string{"create", "delete", "get", "list", "watch"}

// resourceFinder finds on one cluster what stands for the resources.
type resourceFinder struct {
	*manifest.Finder
	Resources
	// mappings are those of the resources that the server serves, by name, and unknown says why the others have none.
	mappings map[string]*meta.RESTMapping
	unknown  map[string]error
}

// newResourceFinder finds out which of the resources a server serves.
func newResourceFinder(config *rest.Config, resources Resources, added overlay.Overlay) (*resourceFinder, error) {
	finder, err := manifest.NewFinder(config, added)
	if err != nil {
		return nil, err
	}
	resources.Names = slices.Clone(resources.Names) // it adds to them
	found := &resourceFinder{Finder: finder, Resources: resources, mappings: map[string]*meta.RESTMapping{}, unknown: map[string]error{}}
	for _, name := range resources.Names {
		if mapping, err := finder.Resource(name); err == nil {
			found.mappings[name] = mapping
		} else {
			found.unknown[name] = err
		}
	}
	return found, nil
}

// prerequisites are the fixtures that are of none of the resources.
func (f *resourceFinder) prerequisites() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(f.Fixtures), func(document *unstructured.Unstructured) bool {
		return slices.ContainsFunc(f.Names, func(name string) bool { return f.isOf(document, name) })
	})
}

// isOf says whether a document is of a resource: of the version, too, if the name says one.
func (f *resourceFinder) isOf(document *unstructured.Unstructured, name string) bool {
	mapping, kind := f.mappings[name], document.GroupVersionKind()
	return mapping != nil && kind.GroupKind() == mapping.GroupVersionKind.GroupKind() &&
		(!strings.Contains(name, "/") || kind.Version == mapping.GroupVersionKind.Version)
}

// object is one of a resource that the server would take: the fixture, or one that is derived from the resource's schema.
func (f *resourceFinder) object(ctx context.Context, name, namespace string) (*unstructured.Unstructured, error) {
	if err := f.unknown[name]; err != nil {
		return nil, err
	}
	mapping := f.mappings[name]
	lacking, err := f.Lacks(mapping, mustOffer...)
	switch {
	case err != nil:
		return nil, err
	case len(lacking) > 0:
		return nil, fmt.Errorf("resource %q does not support %s and cannot be tested", name, strings.Join(lacking, ", "))
	}
	for _, document := range f.Fixtures {
		if f.isOf(document, name) {
			return document, f.Try(ctx, document, namespace)
		}
	}
	if known := fixtures.OfKind(mapping.GroupVersionKind); known != nil {
		return known, f.Try(ctx, known, namespace)
	}
	derived, err := f.Derive(ctx, mapping, namespace)
	if err != nil {
		return nil, fmt.Errorf("%w; correct the output of `runner fixture %s > FILE` and use it with --fixture FILE", err, name)
	}
	return derived, nil
}

// warning says of a resource that is tested because it was named why it is none of those that are tested where all are; it
// is empty for the others.
func (f *resourceFinder) warning(name string) string {
	reason := protected[f.mappings[name].Resource.GroupResource()]
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s is tested because it was named; --all-resources excludes it: %s", name, reason)
}

// status is one that an object of a resource may have: that of the fixture, or one that is derived from the resource's
// schema; nil where there is none.
func (f *resourceFinder) status(ctx context.Context, name string, object *unstructured.Unstructured) map[string]any {
	if given, is := object.Object["status"].(map[string]any); is {
		return given
	}
	return f.DeriveStatus(ctx, f.mappings[name])
}
