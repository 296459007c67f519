package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decoderBuffer is how far the decoder looks ahead to tell YAML from JSON, in bytes.
const decoderBuffer = 4096

// Documents are the manifests in a file, YAML or JSON, one after the other. "-" is standard input. It fails for what is
// no manifest, and where there is none.
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

var errNoDocument = errors.New("no manifest is in it")

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
			return nil, fmt.Errorf("document %d says no apiVersion and kind, as manifests do", len(documents)+1)
		}
		documents = append(documents, document)
	}
}
