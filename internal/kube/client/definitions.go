package client

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServedCollections returns the collections of a CustomResourceDefinition's objects in a namespace, or in all namespaces if it is empty: one
// for each served version.
func ServedCollections(definition *Object, namespace string) []Collection {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var collections []Collection
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			collections = append(collections, Collection{
				Resource: schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, Kind: kind, Namespace: namespace,
			})
		}
	}
	return collections
}

// RemoveDefined removes the selected objects of a definition's kind from a namespace, or from all namespaces if it is empty. What remains is
// not an error: the definition remains with it.
func (c *Client) RemoveDefined(ctx context.Context, definition *Object, namespace, selector string, removal Removal) {
	if collections := ServedCollections(definition, namespace); len(collections) > 0 { // each version serves all objects
		_, _ = c.RemoveEach(ctx, collections[0], selector, removal)
	}
}

// Unsaved returns an object without the fields that the server sets.
func Unsaved(object *Object) *Object {
	unsaved := object.DeepCopy()
	delete(unsaved.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"} {
		unstructured.RemoveNestedField(unsaved.Object, "metadata", field)
	}
	return unsaved
}
