package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// redacted replaces private values.
const redacted = "(redacted)"

// Private contains the values in manifests and patches that the user gave. They may be credentials, so bodies are recorded without them.
// What the harness itself writes is the evidence and stays: names, finalizers, owner references and delete options.
type Private struct{ values map[any]bool }

// NewPrivate returns the strings and numbers in manifests and patches, except those that identify an object.
func NewPrivate(manifests ...map[string]any) Private {
	p := Private{map[any]bool{}}
	for _, manifest := range manifests {
		encoded, _ := json.Marshal(manifest) // which was read from JSON or YAML
		replaceIn(decoded(encoded), func(value any) any {
			p.values[value] = true
			return value
		})
	}
	return p
}

// without returns a body without private values. A body that is not JSON is dropped, because it may contain them in another encoding.
func (p Private) without(body []byte) []byte {
	if len(p.values) == 0 || len(body) == 0 {
		return body
	}
	root, changed := decoded(body), false
	if root == nil {
		return []byte(redacted)
	}
	root = replaceIn(root, func(value any) any {
		by := value
		if p.values[value] {
			by = redacted
		} else if text, ok := value.(string); ok && strings.HasPrefix(text, "{") { // a copy of the object, as kubectl apply adds it
			by = string(p.without([]byte(text)))
		}
		changed = changed || by != value
		return by
	})
	if !changed {
		return body
	}
	without, _ := json.Marshal(root) // which was read from JSON
	return without
}

// decoded decodes JSON without changing its numbers; nil if it is none.
func decoded(content []byte) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil || !errors.Is(decoder.Decode(new(any)), io.EOF) {
		return nil
	}
	return value
}

// replaceIn replaces the strings and numbers in an object or a patch of one that may be private.
func replaceIn(root any, by func(any) any) any {
	switch root := root.(type) {
	case map[string]any:
		for name, value := range root {
			switch metadata, isObject := value.(map[string]any); {
			case root["kind"] == "DeleteOptions", name == "apiVersion", name == "kind", name == "deleteOptions":
			case name == "metadata" && isObject:
				for _, part := range []string{"labels", "annotations"} {
					replaceAll(metadata[part], by)
				}
			default:
				root[name] = replaceAll(value, by)
			}
		}
	case []any: // a JSON patch
		for _, operation := range root {
			if patch, ok := operation.(map[string]any); ok && !isIdentity(patch["path"]) {
				patch["value"] = replaceAll(patch["value"], by)
			}
		}
	}
	return root
}

// isIdentity reports whether an operation of a JSON patch is about metadata other than labels and annotations.
func isIdentity(path any) bool {
	text, _ := path.(string)
	return strings.HasPrefix(text, "/metadata/") && !strings.HasPrefix(text, "/metadata/labels") && !strings.HasPrefix(text, "/metadata/annotations")
}

// replaceAll replaces every string and number in a value.
func replaceAll(value any, by func(any) any) any {
	switch value := value.(type) {
	case string, json.Number:
		return by(value)
	case map[string]any:
		for key, element := range value {
			value[key] = replaceAll(element, by)
		}
	case []any:
		for i, element := range value {
			value[i] = replaceAll(element, by)
		}
	}
	return value
}
