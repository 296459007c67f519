package client

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// standInKinds are kinds of which an object only lies there. Most behaviours are judged on ConfigMaps; the first of the
// others that is served stands in for them on an API server that serves none.
var standInKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
}

// StandInFor is a manifest as it is, unless it is of a ConfigMap and another kind stands in for those: because the run judges that
// kind, or because the server serves no ConfigMaps. Then it is of that kind, with the same metadata.
func (c *Client) StandInFor(manifest *Object) *Object {
	switch {
	case manifest.GroupVersionKind() != standInKinds[0]:
		return manifest
	case c.standIn != nil:
		return c.inPlaceOf(manifest)
	case c.standInKind() == standInKinds[0]:
		return manifest
	}
	plain := &Object{Object: map[string]any{"metadata": manifest.DeepCopy().Object["metadata"]}}
	plain.SetGroupVersionKind(c.standInKind())
	return plain
}

// SetStandIn has copies of an object be made wherever specs make a ConfigMap.
func (c *Client) SetStandIn(object *Object) { c.standIn = object }

// inPlaceOf is the object that stands in for ConfigMaps, with the metadata of one. Of its own metadata it keeps labels
// and annotations, which may mean something to whoever acts on it.
func (c *Client) inPlaceOf(manifest *Object) *Object {
	plain := c.standIn.DeepCopy()
	own := plain.DeepCopy()
	plain.Object["metadata"] = manifest.DeepCopy().Object["metadata"]
	plain.SetLabels(labels.Merge(own.GetLabels(), manifest.GetLabels()))
	plain.SetAnnotations(labels.Merge(own.GetAnnotations(), manifest.GetAnnotations()))
	return plain
}

// findStandInKind is the first plain kind that is served; ConfigMap, too, when that cannot be found out or there is none.
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
