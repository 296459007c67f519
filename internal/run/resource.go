package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/environment"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/manifest"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
)

// Resources are the resources that a run tests instead of ConfigMaps.
type Resources struct {
	// Names are their names in kubectl's notation: "widgets.example.com", or with the version, "widgets.example.com/v1".
	Names []string
	// Fixtures are manifests: of the resources, whose objects are otherwise derived from their schemas, and of prerequisites.
	Fixtures []*unstructured.Unstructured
	// All adds all other resources that can be created and deleted without consequences, except protected ones.
	All bool
}

// orNone returns the names, or an empty one if there are none.
func (r Resources) orNone() []string {
	if len(r.Names) == 0 {
		return []string{""}
	}
	return r.Names
}

// Columns is the minimum number of columns on a cluster: one for ConfigMaps, and several for all resources.
func (r Resources) Columns() int {
	if r.All {
		return max(len(r.Names), several)
	}
	return len(r.orNone())
}

// several stands for more than one.
const several = 2

// mustOffer are the verbs that are required to test a resource.
var mustOffer = []string{"create", "delete", "get", "list", "watch"}

// resourceFinder finds objects of the resources on one cluster.
type resourceFinder struct {
	*manifest.Finder
	Resources
	// mappings are the served resources, by name, and unknown the errors of others.
	mappings map[string]*meta.RESTMapping
	unknown  map[string]error
	// flags are those of `runner fixture` for this cluster and the run's settings, quoted for a shell.
	flags string
}

// newResourceFinder discovers which of the resources a cluster serves. It fails with environment.ErrUnreachable when no server responds.
func newResourceFinder(ctx context.Context, cluster clusters.Cluster, options *Options) (*resourceFinder, error) {
	if err := environment.Reach(ctx, cluster.Provider.RESTConfig()); err != nil {
		return nil, err
	}
	finder, err := manifest.NewFinder(cluster.Provider.RESTConfig(), options.Settings.Additions)
	if err != nil {
		return nil, err
	}
	resources := options.Resources
	resources.Names = slices.Clone(resources.Names) // it appends to them
	found := &resourceFinder{
		Finder: finder, Resources: resources, mappings: map[string]*meta.RESTMapping{}, unknown: map[string]error{},
		flags: options.fixtureFlags(cluster),
	}
	for _, name := range resources.Names {
		if mapping, err := finder.Resource(name); err == nil {
			found.mappings[name] = mapping
		} else {
			found.unknown[name] = err
		}
	}
	return found, nil
}

// fixtureFlags returns the flags with which `runner fixture` does the same dry-run as a run.
func (o *Options) fixtureFlags(cluster clusters.Cluster) string {
	var flags []string
	if o.Namespace != "" {
		flags = append(flags, "--namespace", o.Namespace)
	}
	added := o.Settings.Additions
	for _, key := range slices.Sorted(maps.Keys(added.Labels)) {
		flags = append(flags, "--label", key+"="+added.Labels[key])
	}
	for _, key := range slices.Sorted(maps.Keys(added.Annotations)) {
		flags = append(flags, "--annotation", key+"=VALUE") // reports do not contain the values
	}
	if added.PodOverlay != nil {
		flags = append(flags, "--pod-overlay", "FILE")
	}
	return strings.TrimSpace(cmp.Or(cluster.Flags, "--kubeconfig FILE") + " " + shellescape.QuoteCommand(flags))
}

// checkNames refuses two names of the same resource and version, such as cm and configmaps.
func (f *resourceFinder) checkNames() error {
	for i, name := range f.Names {
		for _, before := range f.Names[:i] {
			if f.mappings[name] != nil && f.mappings[before] != nil && f.mappings[name].GroupVersionKind == f.mappings[before].GroupVersionKind {
				return fmt.Errorf("%s and %s are names of the same resource; keep one of them", before, name)
			}
		}
	}
	return nil
}

// prerequisites returns the fixtures that are not of the resources.
func (f *resourceFinder) prerequisites() []*unstructured.Unstructured {
	var prerequisites []*unstructured.Unstructured
	for _, document := range f.Fixtures {
		if !slices.ContainsFunc(f.Names, func(name string) bool { return f.isOf(document, name) }) {
			prerequisites = append(prerequisites, manifest.Template(document))
		}
	}
	return prerequisites
}

// fixture is the one of a resource; nil where there is none.
func (f *resourceFinder) fixture(name string) *unstructured.Unstructured {
	at := slices.IndexFunc(f.Fixtures, func(document *unstructured.Unstructured) bool { return f.isOf(document, name) })
	if at < 0 {
		return nil
	}
	return f.Fixtures[at]
}

// checkFixtures refuses fixtures that would not be used: those without an object of a resource under test, and a second object of
// one. It passes where a resource is not served, which is no fault of the fixtures.
func (f *resourceFinder) checkFixtures() error {
	used := 0
	for _, name := range f.Names {
		of := 0
		for _, document := range f.Fixtures {
			if f.isOf(document, name) {
				of++
			}
		}
		if of > 1 {
			return fmt.Errorf("%d objects of %s; keep one of them", of, name)
		}
		used += of
	}
	if used > 0 || len(f.unknown) > 0 || len(f.Fixtures) == 0 {
		return nil
	}
	var kinds []string
	for _, document := range f.Fixtures {
		if kind := document.GetAPIVersion() + " " + document.GetKind(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	of, resource := "a resource under test", "RESOURCE"
	if len(f.Names) == 1 {
		of, resource = f.Names[0], f.Names[0]
	}
	return fmt.Errorf("no object of %s among %s; `runner fixture %s %s` prints one", of, strings.Join(kinds, ", "), f.flags, resource)
}

// isOf reports whether a document is of a resource, and of its version if the name contains one.
func (f *resourceFinder) isOf(document *unstructured.Unstructured, name string) bool {
	mapping, kind := f.mappings[name], document.GroupVersionKind()
	return mapping != nil && kind.GroupKind() == mapping.GroupVersionKind.GroupKind() &&
		(!strings.Contains(name, "/") || kind.Version == mapping.GroupVersionKind.Version)
}

// object returns an object of a resource that the server would accept: the fixture, or one that is derived from the schema.
func (f *resourceFinder) object(ctx context.Context, name, namespace string) (*unstructured.Unstructured, error) {
	if err := f.unknown[name]; err != nil {
		return nil, err
	}
	mapping := f.mappings[name]
	lacking, err := f.MissingVerbs(mapping, mustOffer...)
	switch {
	case err != nil:
		return nil, err
	case len(lacking) > 0:
		return nil, fmt.Errorf("resource %q does not support %s and cannot be tested", name, strings.Join(lacking, ", "))
	}
	if fixture := f.fixture(name); fixture != nil {
		template := manifest.Template(fixture)
		return template, f.Try(ctx, template, namespace)
	}
	if known := fixtures.OfKind(mapping.GroupVersionKind); known != nil {
		return known, f.Try(ctx, known, namespace)
	}
	derived, err := f.Derive(ctx, mapping, namespace)
	rejected := &manifest.Rejected{}
	switch isRejected := errors.As(err, &rejected); {
	case errors.Is(err, manifest.ErrForbidden), errors.Is(err, manifest.ErrName), isRejected && rejected.NoConversion():
		return nil, err // which no fixture changes
	case err != nil:
		return nil, fmt.Errorf("%w; write it with `runner fixture %s %s --output-file FILE`, correct it, and use it with --fixture FILE", err, f.flags, name)
	}
	return derived, nil
}

// warning returns why a protected resource, which is tested because it was named, is excluded from all resources; empty for others.
func (f *resourceFinder) warning(name string) string {
	reason := protected[f.mappings[name].Resource.GroupResource()]
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s is tested because it was named; --all-resources excludes it: %s", name, reason)
}

// status returns a valid status of an object of a resource: that of the fixture, or one that is derived from the schema; nil when there is
// none.
func (f *resourceFinder) status(ctx context.Context, name string) map[string]any {
	if fixture := f.fixture(name); fixture != nil {
		if given, ok := fixture.Object["status"].(map[string]any); ok {
			return given
		}
	}
	return f.DeriveStatus(ctx, f.mappings[name])
}
