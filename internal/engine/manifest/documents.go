package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decoderBuffer is the number of bytes that the decoder reads to distinguish YAML from JSON.
const decoderBuffer = 4096

// Documents returns the manifests in a file, YAML or JSON. "-" is standard input. It fails when a document is not a manifest, and when
// there is none.
func Documents(file string) ([]*unstructured.Unstructured, error) {
	read := os.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		read = opened
	}
	documents, err := decode(read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return documents, nil
}

var errNoDocument = errors.New("it contains no manifest")

func decode(from io.Reader) ([]*unstructured.Unstructured, error) {
	var documents []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(from, decoderBuffer)
	for {
		content := map[string]any{}
		switch err := decoder.Decode(&content); {
		case errors.Is(err, io.EOF) && len(documents) == 0:
			return nil, errNoDocument
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", len(documents)+1, err)
		case len(content) == 0:
			continue // between two separators
		}
		document := &unstructured.Unstructured{Object: content}
		if document.GetAPIVersion() == "" || document.GetKind() == "" {
			return nil, fmt.Errorf("document %d has no apiVersion and kind", len(documents)+1)
		}
		items, err := itemsOf(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(documents)+1, err)
		}
		documents = append(documents, items...)
	}
}

// itemsOf returns the items of a List, as kubectl get prints several objects, and any other document as it is.
func itemsOf(document *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !document.IsList() {
		return []*unstructured.Unstructured{document}, nil
	}
	list, err := document.ToList()
	if err != nil {
		return nil, fmt.Errorf("read the items of the list: %w", err)
	}
	var items []*unstructured.Unstructured
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	return items, nil
}

// templateFields are the fields of an object's metadata that belong to its manifest. The server and controllers write the others.
var templateFields = []string{"name", "generateName", "labels", "annotations"}

// Template returns a copy of an object that can be created again: without its status, and without what the server, controllers and
// kubectl wrote into its metadata.
func Template(object *unstructured.Unstructured) *unstructured.Unstructured {
	template := object.DeepCopy()
	metadata := map[string]any{}
	for _, field := range templateFields {
		if value, has, err := unstructured.NestedFieldNoCopy(template.Object, "metadata", field); has && err == nil {
			metadata[field] = value
		}
	}
	template.Object["metadata"] = metadata
	delete(template.Object, "status")
	unstructured.RemoveNestedField(metadata, "annotations", corev1.LastAppliedConfigAnnotation)
	return template
}
