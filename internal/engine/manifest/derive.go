package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/ptr"
)

// maxDepth limits the depth of a schema, because some require themselves (JSONSchemaProps) and have no finite values.
const maxDepth = 24

// deriver derives minimal values of schemas.
type deriver struct {
	// schemas resolves references.
	schemas map[string]*spec.Schema
	depth   int
}

// value returns the smallest value of a schema: a default or an enumerated value, a string that matches format and pattern, or an object
// with its required properties.
func (d *deriver) value(schema *spec.Schema) (any, error) {
	schema = d.resolved(schema)
	d.depth++
	defer func() { d.depth-- }()
	switch {
	case d.depth > maxDepth:
		return nil, fmt.Errorf("its schema is nested more than %d deep", maxDepth)
	case !isEmpty(schema.Default):
		return plain(schema.Default), nil
	case len(schema.Enum) > 0:
		return plain(schema.Enum[0]), nil
	case isTrue(schema, "x-kubernetes-int-or-string"):
		return d.number(schema, true), nil
	}
	switch kindOf(schema) {
	case "array":
		return d.array(schema)
	case "string":
		return text(schema)
	case "integer", "number":
		return d.number(schema, schema.Type.Contains("integer")), nil
	case "boolean":
		return false, nil
	default:
		return d.object(schema)
	}
}

// object returns an object with the required properties, including those of the first alternative.
func (d *deriver) object(schema *spec.Schema) (map[string]any, error) {
	object := map[string]any{}
	if isTrue(schema, "x-kubernetes-embedded-resource") {
		object["apiVersion"], object["kind"] = "v1", "ConfigMap"
		object["metadata"] = map[string]any{"name": "embedded"}
	}
	for _, name := range d.required(schema) {
		if err := d.add(schema, object, name); err != nil {
			return nil, err
		}
	}
	return object, d.fill(schema, object)
}

// add adds a property that the object does not have.
func (d *deriver) add(schema *spec.Schema, object map[string]any, name string) error {
	if _, has := object[name]; has {
		return nil
	}
	property, known := schema.Properties[name]
	if !known {
		property = spec.Schema{}
	}
	value, err := d.value(&property)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	object[name] = value
	return nil
}

// fill adds properties in order of name until there are at least minProperties.
func (d *deriver) fill(schema *spec.Schema, object map[string]any) error {
	least := int(ptr.Deref(schema.MinProperties, 0))
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if len(object) >= least {
			return nil
		}
		if err := d.add(schema, object, name); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
		return nil
	}
	for i := len(object); i < least; i++ {
		element, err := d.value(schema.AdditionalProperties.Schema)
		if err != nil {
			return err
		}
		object[fmt.Sprintf("key-%d", i)] = element
	}
	return nil
}

// required returns the required properties of an object, including those of one alternative.
func (d *deriver) required(schema *spec.Schema) []string {
	required := slices.Clone(schema.Required)
	for _, alternatives := range [][]spec.Schema{schema.OneOf, schema.AnyOf} {
		if len(alternatives) > 0 {
			required = append(required, d.required(&alternatives[0])...)
		}
	}
	for i := range schema.AllOf {
		required = append(required, d.required(&schema.AllOf[i])...)
	}
	return required
}

// array returns minItems different elements.
func (d *deriver) array(schema *spec.Schema) ([]any, error) {
	array := []any{}
	for i := range int(ptr.Deref(schema.MinItems, 0)) {
		if schema.Items == nil || schema.Items.Schema == nil {
			array = append(array, map[string]any{})
			continue
		}
		element, err := d.value(schema.Items.Schema)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		array = append(array, different(element, i, keysOf(schema)))
	}
	return array, nil
}

// different makes the elements of a list different: strings, numbers, and the keys of objects.
func different(element any, i int, keys []string) any {
	if i == 0 {
		return element
	}
	switch element := element.(type) {
	case string:
		return fmt.Sprintf("%s-%d", element, i)
	case int64:
		return element + int64(i)
	case map[string]any:
		for _, key := range keys {
			element[key] = different(element[key], i, nil)
		}
	}
	return element
}

// number returns 1, or the nearest valid number.
func (d *deriver) number(schema *spec.Schema, whole bool) any {
	least, most, step := ptr.Deref(schema.Minimum, math.Inf(-1)), ptr.Deref(schema.Maximum, math.Inf(1)), ptr.Deref(schema.MultipleOf, 0)
	apart := cmp.Or(step, map[bool]float64{true: 1, false: (most - least) / 2}[whole || math.IsInf(most-least, 0)])
	if schema.ExclusiveMinimum {
		least += apart
	}
	if schema.ExclusiveMaximum {
		most -= apart
	}
	number := max(min(1, most), least)
	if step > 0 {
		number = math.Ceil(number/step) * step
	}
	if whole {
		return int64(math.Ceil(number))
	}
	return number
}

// text returns a string of the format, the pattern and the minimum length.
func text(schema *spec.Schema) (string, error) {
	least, most := int(ptr.Deref(schema.MinLength, 0)), int(ptr.Deref(schema.MaxLength, math.MaxInt))
	if sample, known := samples[schema.Format]; known && schema.Pattern == "" && len(sample) >= least && len(sample) <= most {
		return sample, nil
	}
	if schema.Pattern == "" {
		return strings.Repeat("a", min(max(least, 1), most)), nil
	}
	return matching(schema.Pattern, least, most)
}

// samples are values of the formats that the API server checks (apiextensions' pkg/apiserver/validation/formats.go).
var samples = map[string]string{
	"bsonobjectid": "507f1f77bcf86cd799439011",
	"byte":         "c2FtcGxl",
	"cidr":         "192.0.2.0/24",
	"creditcard":   "4111111111111111",
	"date":         "2006-01-02",
	"date-time":    "2006-01-02T15:04:05Z",
	"datetime":     "2006-01-02T15:04:05Z",
	"duration":     "1h",
	"email":        "sample@example.com",
	"hexcolor":     "#ffffff",
	"hostname":     "sample.example.com",
	"ipv4":         "192.0.2.1",
	"ipv6":         "2001:db8::1",
	"isbn":         "0321751043",
	"isbn10":       "0321751043",
	"isbn13":       "9780321751041",
	"mac":          "00:00:5e:00:53:01",
	"quantity":     "1",
	"rgbcolor":     "rgb(255,255,255)",
	"ssn":          "219-09-9999",
	"uri":          "https://example.com/",
	"uuid":         "01234567-89ab-4def-8123-456789abcdef",
	"uuid3":        "6fa459ea-ee8a-3ca4-894e-db77e160355e",
	"uuid4":        "01234567-89ab-4def-8123-456789abcdef",
	"uuid5":        "886313e1-3b8a-5372-9b90-0c9aee199e5d",
}

// resolved follows a reference, including one in an allOf with a default or a description.
func (d *deriver) resolved(schema *spec.Schema) *spec.Schema {
	for range maxDepth {
		name := schema.Ref.String()
		if name == "" && len(schema.AllOf) == 1 && schema.AllOf[0].Ref.String() != "" && isEmpty(schema.Default) {
			name = schema.AllOf[0].Ref.String()
		}
		target, known := d.schemas[name[strings.LastIndex(name, "/")+1:]]
		if !known {
			return schema
		}
		schema = target
	}
	return schema
}

func kindOf(schema *spec.Schema) string {
	for _, kind := range []string{"object", "array", "string", "integer", "number", "boolean"} {
		if schema.Type.Contains(kind) {
			return kind
		}
	}
	return ""
}

// keysOf returns the keys of a list of type map.
func keysOf(schema *spec.Schema) []string {
	keys, _ := schema.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return keys
}

func isTrue(schema *spec.Schema, extension string) bool {
	enabled, _ := schema.Extensions.GetBool(extension)
	return enabled
}

// isEmpty reports whether a default is Go's zero value, as those of required fields of Kubernetes are.
func isEmpty(of any) bool {
	switch of := of.(type) {
	case nil:
		return true
	case string:
		return of == ""
	case float64:
		return of == 0
	case map[string]any:
		return len(of) == 0
	}
	return false
}

// plain copies the value of a document as that of an object: whole numbers are int64.
func plain(of any) any {
	switch of := of.(type) {
	case float64:
		if of == math.Trunc(of) {
			return int64(of)
		}
	case map[string]any:
		object := map[string]any{}
		for name, field := range of {
			object[name] = plain(field)
		}
		return object
	case []any:
		list := make([]any, len(of))
		for i, element := range of {
			list[i] = plain(element)
		}
		return list
	}
	return of
}

// matching returns a short string that matches a pattern and has the given length.
func matching(pattern string, least, most int) (string, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return "", fmt.Errorf("its pattern %q is not a Go regular expression: %w", pattern, err)
	}
	for repeat := range maxRepeat {
		candidate, err := shortest(pattern, repeat)
		if err != nil {
			return "", err
		}
		candidate += strings.Repeat("a", max(0, min(least, repeat)-len(candidate))) // for patterns without an anchor at the end
		if len(candidate) >= least && len(candidate) <= most && compiled.MatchString(candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no string of %d to %d characters matches the pattern %q", least, most, pattern)
}
