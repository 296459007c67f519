package client

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// standInKinds are kinds that no controller acts on. Specs use ConfigMaps; on an API server without them, the next served kind replaces
// them.
var standInKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
}

// StandInFor returns the manifest, or for a ConfigMap an object of another kind with the same metadata if the run tests that kind or the
// server does not serve ConfigMaps.
func (c *Client) StandInFor(manifest *Object) *Object {
	switch {
	case manifest.GroupVersionKind() != standInKinds[0]:
		return manifest
	case c.standIn != nil:
		return c.standInOf(manifest)
	case c.standInKind() == standInKinds[0]:
		return manifest
	}
	plain := &Object{Object: map[string]any{"metadata": manifest.DeepCopy().Object["metadata"]}}
	plain.SetGroupVersionKind(c.standInKind())
	return plain
}

// SetStandIn replaces all ConfigMaps by copies of an object.
func (c *Client) SetStandIn(object *Object) { c.standIn = object }

// standInOf returns the stand-in with the metadata of a ConfigMap. It keeps its own labels and annotations, which controllers may need.
func (c *Client) standInOf(manifest *Object) *Object {
	plain := c.standIn.DeepCopy()
	own := plain.DeepCopy()
	plain.Object["metadata"] = manifest.DeepCopy().Object["metadata"]
	plain.SetLabels(labels.Merge(own.GetLabels(), manifest.GetLabels()))
	plain.SetAnnotations(labels.Merge(own.GetAnnotations(), manifest.GetAnnotations()))
	return plain
}

// findStandInKind returns the first served kind; ConfigMap when none is served or discovery fails.
func (c *Client) findStandInKind() schema.GroupVersionKind {
	for _, kind := range standInKinds {
		_, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
			return kind
		case !meta.IsNoMatchError(err):
			return standInKinds[0]
		}
	}
	return standInKinds[0]
}
