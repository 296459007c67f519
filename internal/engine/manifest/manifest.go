// Package manifest derives an object of any kind that an API server accepts, from the kind's OpenAPI v3 schema and from what the server
// rejects in dry-runs.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/overlay"
)

// ErrUnknown is the error for a resource that the server does not serve.
var ErrUnknown = errors.New("the server does not serve it")

// ErrForbidden is the error for an object that the credentials may not create. It names the permission that is missing.
var ErrForbidden = errors.New("missing permission")

// ErrName is the error for a resource whose rules permit only other names than those of a run.
var ErrName = errors.New("the names of a run's objects contain its id, such as " + runName + ", so none can be created")

// ErrNoNamespace is the error for a dry-run in a namespace that does not exist.
var ErrNoNamespace = client.ErrNoNamespace

// Finder finds objects to create on one API server.
type Finder struct {
	client *client.Client
	mapper meta.RESTMapper
	// published is when the server is expected to have published the schemas of all its kinds.
	published time.Time
	// reading protects latest, the schemas that were read last. The resources of a run often are of one group, and hundreds of copies of its
	// schemas would take gigabytes.
	reading sync.Mutex
	latest  groupSchemas
}

// groupSchemas are the schemas of a group and version.
type groupSchemas struct {
	schema.GroupVersion
	schemas map[string]*spec.Schema
}

// NewFinder returns a finder for an API server. It sends no request. It applies the overlay to every object that it tries, as a run does.
func NewFinder(config *rest.Config, added overlay.Overlay) (*Finder, error) {
	connected, err := client.New(config, client.NewGuard(""))
	if err != nil {
		return nil, err
	}
	return &Finder{client: connected.Adding(added), mapper: connected.ShortNames(), published: time.Now().Add(publication)}, nil
}

// Resource returns the resource with a name as kubectl accepts it: "widgets", "widgets.example.com", a short name such as "wd", or with the
// version, "widgets.example.com/v1". It fails with ErrUnknown if there is none.
func (f *Finder) Resource(name string) (*meta.RESTMapping, error) {
	resource, version, _ := strings.Cut(name, "/")
	partial := schema.ParseGroupResource(resource).WithVersion(version)
	known, err := f.mapper.ResourceFor(partial)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("resource %q: %w: %s", name, ErrUnknown, f.alternatives(resource, version))
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

// sampleName is the name of derived objects.
const sampleName = "sample"

// runName is their name in dry-runs. It contains ids as the names in a run do, because rules may be about the name.
const runName = sampleName + "-dc00000000-000000"

// Derive derives an object of a kind from its schema and checks it with a dry-run, in the namespace if the kind is namespaced. Where the
// server rejects the object, it is returned with a Rejected error. It fails with ErrForbidden and ErrNoNamespace, and with ErrName where
// the server accepts the returned object, but no name as in a run.
func (f *Finder) Derive(ctx context.Context, mapping *meta.RESTMapping, namespace string) (*unstructured.Unstructured, error) {
	schemas, ofKind, err := f.schemasOf(ctx, mapping.GroupVersionKind)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the schema of %s: %w", mapping.Resource.GroupResource(), err)
	case ofKind == nil:
		return nil, fmt.Errorf("the server publishes no schema of %s: write a manifest", mapping.Resource.GroupResource())
	}
	attempt := &attempt{
		deriver: deriver{schemas: schemas}, schema: ofKind,
		create: f.dryRun(mapping, namespace),
	}
	return attempt.run(ctx, mapping)
}

// DeriveStatus derives a status from a kind's schema. The server has not validated it, because there is no object to write it to. It is nil
// when the kind has no status subresource, and when its schema requires nothing.
func (f *Finder) DeriveStatus(ctx context.Context, mapping *meta.RESTMapping) map[string]any {
	subresource := *mapping
	subresource.Resource.Resource += "/status"
	if lacking, err := f.MissingVerbs(&subresource, "patch"); err != nil || len(lacking) > 0 {
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

// publication limits the total wait for schemas. The schema of a new kind is published after the kind is served.
const publication = 10 * time.Second

// publicationPolling is the interval at which schemas are read.
const publicationPolling = 200 * time.Millisecond

// schemasOf returns the schemas of a group and version, and that of the kind, which is nil where there is none.
func (f *Finder) schemasOf(ctx context.Context, kind schema.GroupVersionKind) (schemas map[string]*spec.Schema, ofKind *spec.Schema, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if ofKind = schemaOf(f.latest.schemas, kind); f.latest.GroupVersion == kind.GroupVersion() && ofKind != nil {
		return f.latest.schemas, ofKind, nil
	}
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
	f.latest = groupSchemas{kind.GroupVersion(), schemas}
	return schemas, ofKind, err
}

// Try checks an object with a dry-run, in the namespace if the kind is namespaced.
func (f *Finder) Try(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := f.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find the resource of the fixture, %s %s: %w", kind.GroupVersion(), kind.Kind, err)
	}
	tried := object.DeepCopy()
	tried.SetName(runName)
	if err := f.dryRun(mapping, namespace)(ctx, tried); err != nil {
		return fmt.Errorf("the server rejects the fixture of %s: %w", mapping.Resource.GroupResource(), err)
	}
	return nil
}

// MissingVerbs returns the verbs that a resource does not support.
func (f *Finder) MissingVerbs(mapping *meta.RESTMapping, verbs ...string) ([]string, error) {
	served, err := f.client.Discovery().ServerResourcesForGroupVersion(mapping.Resource.GroupVersion().String())
	if err != nil {
		return nil, fmt.Errorf("discover the verbs of %s: %w", mapping.Resource.GroupResource(), err)
	}
	for _, resource := range served.APIResources {
		if resource.Name == mapping.Resource.Resource {
			return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return slices.Contains(resource.Verbs, verb) }), nil
		}
	}
	return verbs, nil
}

// schemaOf returns the schema of a kind, by its extension x-kubernetes-group-version-kind.
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

// dryRun returns a function that creates an object as a dry-run.
func (f *Finder) dryRun(mapping *meta.RESTMapping, namespace string) func(context.Context, *unstructured.Unstructured) error {
	return func(ctx context.Context, object *unstructured.Unstructured) error {
		tried := object.DeepCopy()
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			tried.SetNamespace(namespace)
		}
		response := f.client.DryRunCreate(ctx, tried, client.Strict)
		if lacking := f.client.MissingPermission(ctx, response); response.Err != nil && lacking != "" {
			return fmt.Errorf("%w: %s", ErrForbidden, lacking)
		}
		if apierrors.IsNotFound(response.Err) && tried.GetNamespace() != "" {
			return fmt.Errorf("namespace %q %w", namespace, ErrNoNamespace)
		}
		return response.Err
	}
}

// refusal returns the causes of a rejection that names fields; nil for any other error.
func refusal(err error) []metav1.StatusCause {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
