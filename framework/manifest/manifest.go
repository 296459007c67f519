// Package manifest finds an object of a kind to create: what the kind's OpenAPI v3 schema requires, and what the API server asks
// for beyond that when the object is tried as a dry-run.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/overlay"
)

// ErrUnknown says that the server serves no such resource.
var ErrUnknown = errors.New("the server serves no such resource")

// Finder finds objects to create on one API server.
type Finder struct {
	client *client.Client
	mapper meta.RESTMapper
	// published is when all schemas are published of what is served.
	published time.Time
}

// NewFinder makes a finder for an API server. It sends no request yet. The overlay is added to every object that it tries, as a run
// adds it to what it creates.
func NewFinder(config *rest.Config, added overlay.Overlay) (*Finder, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	return &Finder{client: connected.Adding(added), mapper: connected.ShortNames(), published: time.Now().Add(publication)}, nil
}

// Resource is the resource that kubectl users call so: "widgets", "widgets.example.com", "wd" for short, or with the version,
// "widgets.example.com/v1". The error is ErrUnknown if there is none.
func (f *Finder) Resource(name string) (*meta.RESTMapping, error) {
	resource, version, _ := strings.Cut(name, "/")
	partial := schema.ParseGroupResource(resource).WithVersion(version)
	known, err := f.mapper.ResourceFor(partial)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("resource %q: %w: `kubectl api-resources` lists those there are", name, ErrUnknown)
	}
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", name, err)
	}
	kind, err := f.mapper.KindFor(known)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w", name, err)
	}
	return f.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// Derive makes an object of a kind from its schema, and has the server check it in a dry-run, in the namespace if the kind has
// namespaces. Where the server refuses it, the error says for which fields, and there is the object all the same.
func (f *Finder) Derive(ctx context.Context, mapping *meta.RESTMapping, namespace string) (*unstructured.Unstructured, error) {
	schemas, ofKind, err := f.schemasOf(ctx, mapping.GroupVersionKind)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the schema of %s: %w", mapping.Resource.GroupResource(), err)
	case ofKind == nil:
		return nil, fmt.Errorf("the server publishes no schema of %s: write its manifest by hand", mapping.Resource.GroupResource())
	}
	attempt := &attempt{
		deriver: deriver{schemas: schemas}, schema: ofKind,
		create: f.dryRun(mapping, namespace),
	}
	return attempt.run(ctx, mapping)
}

// DeriveStatus makes a status from what a kind's schema requires of one. No server has checked it, as there is nothing
// to write it to yet. It is nil where the kind has no status subresource, and where its schema suggests no status.
func (f *Finder) DeriveStatus(ctx context.Context, mapping *meta.RESTMapping) map[string]any {
	subresource := *mapping
	subresource.Resource.Resource += "/status"
	if lacking, err := f.Lacks(&subresource, "patch"); err != nil || len(lacking) > 0 {
		return nil
	}
	schemas, ofKind, err := f.schemasOf(ctx, mapping.GroupVersionKind)
	if err != nil || ofKind == nil {
		return nil
	}
	derived := map[string]any{}
	if err := (&deriver{schemas: schemas}).add(ofKind, derived, "status"); err != nil {
		return nil
	}
	status, _ := derived["status"].(map[string]any)
	return status
}

// publication is how long schemas are waited for, all together: that of a kind which has just been defined is published
// after the kind is served.
const publication = 10 * time.Second

// publicationPolling is how often it is looked whether a schema is published.
const publicationPolling = 200 * time.Millisecond

// schemasOf are the schemas that the server publishes of a group and version, and that of the kind; nil where there is none.
func (f *Finder) schemasOf(ctx context.Context, kind schema.GroupVersionKind) (schemas map[string]*spec.Schema, ofKind *spec.Schema, err error) {
	err = wait.PollUntilContextTimeout(ctx, publicationPolling, time.Until(f.published), true, func(context.Context) (bool, error) {
		document, err := openapi3.NewRoot(f.client.Schemas()).GVSpec(kind.GroupVersion())
		if errors.As(err, new(*openapi3.GroupVersionNotFoundError)) {
			return false, nil
		}
		if err == nil && document.Components != nil {
			schemas = document.Components.Schemas
			ofKind = schemaOf(schemas, kind)
		}
		return ofKind != nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil
	}
	return schemas, ofKind, err
}

// Try has the server check an object in a dry-run, in the namespace if the kind has namespaces, and says what it refuses.
func (f *Finder) Try(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := f.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the resource of the fixture, %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	tried := object.DeepCopy()
	tried.SetName("sample")
	if err := f.dryRun(mapping, namespace)(ctx, tried); err != nil {
		return fmt.Errorf("the server refuses the fixture of %s: %w", mapping.Resource.GroupResource(), err)
	}
	return nil
}

// Lacks are those of some verbs that the server does not offer on a resource.
func (f *Finder) Lacks(mapping *meta.RESTMapping, verbs ...string) ([]string, error) {
	served, err := f.client.Discovery().ServerResourcesForGroupVersion(mapping.Resource.GroupVersion().String())
	if err != nil {
		return nil, fmt.Errorf("find out what the server offers on %s: %w", mapping.Resource.GroupResource(), err)
	}
	for _, resource := range served.APIResources {
		if resource.Name == mapping.Resource.Resource {
			return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return slices.Contains(resource.Verbs, verb) }), nil
		}
	}
	return verbs, nil
}

// schemaOf is the schema that says that it is of the kind.
func schemaOf(schemas map[string]*spec.Schema, kind schema.GroupVersionKind) *spec.Schema {
	for _, candidate := range schemas {
		var kinds []map[string]string
		if candidate.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) == nil &&
			slices.ContainsFunc(kinds, func(k map[string]string) bool {
				return k["group"] == kind.Group && k["version"] == kind.Version && k["kind"] == kind.Kind
			}) && len(kinds) == 1 {
			return candidate
		}
	}
	return nil
}

// dryRun tries to create an object, without doing it.
func (f *Finder) dryRun(mapping *meta.RESTMapping, namespace string) func(context.Context, *unstructured.Unstructured) error {
	return func(ctx context.Context, object *unstructured.Unstructured) error {
		tried := object.DeepCopy()
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			tried.SetNamespace(namespace)
		}
		return f.client.DryRunCreate(ctx, tried, client.Strict).Err
	}
}

// refusal is an answer that names what is wrong with an object: nil for any other.
func refusal(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
