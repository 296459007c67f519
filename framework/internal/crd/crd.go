// Package crd stores a copy of a CustomResourceDefinition in a ConfigMap before a spec deletes it, so that it can be restored even if the
// run is killed.
package crd

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/overlay"
)

const (
	// keptLabel is on the ConfigMaps that contain copies.
	keptLabel = client.Domain + "/definition"
	// key is the ConfigMap's key of the copy: compressed JSON, because a definition may be larger than a ConfigMap.
	key = "definition.json.gz"
	// polling is the interval for reading a definition that is being deleted.
	polling = 200 * time.Millisecond
	// finishing is how long the resource's controller may take to remove its finalizers from the run's objects. After that they are removed
	// here, because the user's definition must be restored.
	finishing = 10 * time.Second
)

// Kind is CustomResourceDefinition.
var Kind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Keep stores a copy of a definition in a ConfigMap with the labels of a run.
func Keep(ctx context.Context, with *client.Client, definition *client.Object, namespace string, of labels.Set) client.Response {
	content, err := pack(definition)
	if err != nil {
		return client.Response{Request: "store a copy of " + client.Title(definition), Err: err}
	}
	kept := &client.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"binaryData": map[string]any{key: base64.StdEncoding.EncodeToString(content)},
	}}
	kept.SetNamespace(namespace)
	kept.SetName("definition-" + rand.String(6))
	kept.SetLabels(labels.Merge(of, labels.Set{keptLabel: "kept"}))
	return with.Create(ctx, kept)
}

// pack encodes a definition without the fields that the server sets.
func pack(definition *client.Object) ([]byte, error) {
	stripped := definition.DeepCopy()
	delete(stripped.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"} {
		unstructured.RemoveNestedField(stripped.Object, "metadata", field)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	err := errors.Join(json.NewEncoder(writer).Encode(stripped.Object), writer.Close())
	return packed.Bytes(), err
}

// unpack decodes the definition in a ConfigMap.
func unpack(kept *client.Object) (*client.Object, error) {
	encoded, _, _ := unstructured.NestedString(kept.Object, "binaryData", key)
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	definition := &client.Object{}
	return definition, json.Unmarshal(content, &definition.Object)
}

// RestoreAll restores the definitions that are stored in a namespace and do not exist, and deletes the copies. It waits for definitions
// that are being deleted.
func RestoreAll(ctx context.Context, with *client.Client, namespace, run string) error {
	collection := client.Collection{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: namespace}
	copies, response := with.List(ctx, collection, keptLabel+","+client.RunLabel+"="+run)
	if response.Err != nil {
		return ignoring(response.Err)
	}
	var failures []error
	for _, kept := range copies {
		if err := restore(ctx, with, kept, run); err != nil {
			failures = append(failures, fmt.Errorf("restore the CustomResourceDefinition in ConfigMap %q in namespace %q: %w", kept.GetName(), namespace, err))
			continue
		}
		with.Delete(ctx, kept, metav1.DeleteOptions{}) // otherwise it is deleted with the run
	}
	return errors.Join(failures...)
}

// ignoring drops the errors of credentials that may not read, and so have stored nothing, and of namespaces that do not exist.
func ignoring(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// restore restores a definition after its deletion has completed, unless someone else has.
func restore(ctx context.Context, with *client.Client, kept *client.Object, run string) error {
	definition, err := unpack(kept)
	if err != nil {
		return err
	}
	var last error
	until := time.Now().Add(finishing)
	err = wait.PollUntilContextCancel(ctx, polling, true, func(ctx context.Context) (bool, error) {
		var there bool
		removal := client.Removal{AllFinalizers: time.Now().After(until)}
		there, last = attempt(ctx, with, definition, kept.GetNamespace(), run, removal)
		return there, nil
	})
	return errors.Join(err, last)
}

// attempt creates a definition that is gone, and reports whether it exists. It releases the run's objects of a definition that is being
// deleted, because the deletion waits for them.
func attempt(ctx context.Context, with *client.Client, definition *client.Object, namespace, run string, how client.Removal) (bool, error) {
	read := with.Get(ctx, definition)
	switch {
	case apierrors.IsNotFound(read.Err):
		return false, with.Adding(overlay.Overlay{}).Create(ctx, definition).Err // unchanged; the next attempt checks it
	case read.Err != nil:
		return false, read.Err
	case read.Object.GetDeletionTimestamp() == nil:
		return true, nil
	}
	return false, Release(ctx, with, read.Object, namespace, run, how)
}

// Release removes the run's objects of a definition's kind from a namespace, or from all namespaces if it is empty.
func Release(ctx context.Context, with *client.Client, definition *client.Object, namespace, run string, how client.Removal) error {
	for _, collection := range ServedCollections(definition, namespace) {
		return ignoring(with.Clear(ctx, collection, client.RunLabel+"="+run, how).Err) // each version serves all objects
	}
	return nil
}

// ServedCollections returns the collections of a CustomResourceDefinition's objects in a namespace, one for each served version.
func ServedCollections(definition *client.Object, namespace string) []client.Collection {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var collections []client.Collection
	for _, version := range versions {
		version, _ := version.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true {
			collections = append(collections, client.Collection{
				Resource: schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, Kind: kind, Namespace: namespace,
			})
		}
	}
	return collections
}
