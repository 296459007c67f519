package manifest

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// derived returns the value that is derived from a schema in YAML.
func derived(t *testing.T, document string) (any, error) {
	t.Helper()
	schema := &spec.Schema{}
	if err := yaml.Unmarshal([]byte(document), schema); err != nil {
		t.Fatal(err)
	}
	d := &deriver{schemas: map[string]*spec.Schema{
		"named":  spec.StringProperty().WithEnum("given", "other"),
		"itself": {SchemaProps: spec.SchemaProps{Required: []string{"more"}, Properties: map[string]spec.Schema{"more": *spec.RefSchema("#/components/schemas/itself")}}},
	}}
	return d.value(schema)
}

func TestDerive_RequiredFields(t *testing.T) {
	for name, test := range map[string]struct {
		schema string
		want   any
	}{
		"object":              {`{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}`, map[string]any{"a": "a"}},
		"default":             {`{type: integer, default: 7}`, int64(7)},
		"empty default":       {`{type: string, default: "", minLength: 2}`, "aa"},
		"enumeration":         {`{type: string, enum: [Retain, Delete]}`, "Retain"},
		"reference":           {`{$ref: "#/components/schemas/named"}`, "given"},
		"described reference": {`{description: of it, allOf: [{$ref: "#/components/schemas/named"}]}`, "given"},
		"format":              {`{type: string, format: date-time}`, "2006-01-02T15:04:05Z"},
		"format too short":    {`{type: string, format: byte, minLength: 12}`, "aaaaaaaaaaaa"},
		"pattern":             {`{type: string, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', minLength: 3}`, "aaa"},
		"boolean":             {`{type: boolean}`, false},
		"integer":             {`{type: integer}`, int64(1)},
		"least":               {`{type: integer, minimum: 5}`, int64(5)},
		"more than":           {`{type: integer, minimum: 5, exclusiveMinimum: true}`, int64(6)},
		"most":                {`{type: integer, maximum: -3}`, int64(-3)},
		"multiple":            {`{type: integer, minimum: 5, multipleOf: 4}`, int64(8)},
		"between":             {`{type: number, minimum: 0, maximum: 1, exclusiveMaximum: true}`, 0.5},
		"integer or string":   {`{x-kubernetes-int-or-string: true}`, int64(1)},
		"list":                {`{type: array, minItems: 2, items: {type: string}}`, []any{"a", "a-1"}},
		"list of type map": {
			`{type: array, minItems: 2, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}`,
			[]any{map[string]any{"k": "a"}, map[string]any{"k": "a-1"}},
		},
		"embedded object": {`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "embedded"}}},
		"one of":         {`{type: object, properties: {a: {type: boolean}, b: {}}, oneOf: [{required: [a]}, {required: [b]}]}`, map[string]any{"a": false}},
		"so many fields": {`{type: object, minProperties: 1, properties: {later: {type: boolean}, first: {type: boolean}}}`, map[string]any{"first": false}},
		"so many keys":   {`{type: object, minProperties: 2, additionalProperties: {type: boolean}}`, map[string]any{"key-0": false, "key-1": false}},
		"anything":       {`{x-kubernetes-preserve-unknown-fields: true}`, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := derived(t, test.schema)

			NewWithT(t).Expect(value, err).To(Equal(test.want))
		})
	}
}

func TestDerive_NoValue(t *testing.T) {
	g := NewWithT(t)

	_, err := derived(t, `{type: object, required: [a], properties: {a: {type: string, pattern: '^ab$', minLength: 3}}}`)
	g.Expect(err).To(MatchError(And(HavePrefix("a: no string of 3 to "), ContainSubstring(`pattern "^ab$"`))))
	_, err = derived(t, `{$ref: "#/components/schemas/itself"}`)
	g.Expect(err).To(MatchError(HaveSuffix("its schema is nested more than 24 deep")))
}

func TestMatching(t *testing.T) {
	for pattern, want := range map[string]string{
		`^[a-z]+/[a-z]+$`:        "a/a",
		`^(http|https)://.*$`:    "http://",
		`^\d{4}-\d{2}$`:          "0000-00",
		`^(?:[A-Z]{2}|x)$`:       "AA",
		`^([0-9]+(h|m|s|ms))+$`:  "0h",
		`^a?b*$`:                 "",
		`^[^/]+$`:                "a",
		`^[_.-]$`:                "-",
		`(?i)^yes$`:              "YES",
		`^[a-z]{2,4}$`:           "aa",
		`^(([a-z0-9]|-)+\.)+io$`: "0.io",
	} {
		t.Run(pattern, func(t *testing.T) {
			text, err := matching(pattern, 0, 63)

			g := NewWithT(t)
			g.Expect(text, err).To(MatchRegexp(pattern))
			g.Expect(len(text)).To(Equal(len(want)), "%q", text)
		})
	}
}

func TestParse_ServerPath(t *testing.T) {
	g := NewWithT(t)
	object := map[string]any{"spec": map[string]any{"rules": []any{map[string]any{}, map[string]any{"host": "a"}}}}

	g.Expect(parse("spec.rules[1].paths[example.com/x]")).To(Equal([]string{"spec", "rules", "1", "paths", "example.com/x"}))
	g.Expect(setting(parse("spec.rules[1].paths[example.com/x]"), "set")(object)).To(Succeed())
	g.Expect(setting(parse("status.phase"), "new")(object)).To(Succeed())
	g.Expect(object).To(Equal(map[string]any{
		"spec": map[string]any{"rules": []any{
			map[string]any{}, map[string]any{"host": "a", "paths": map[string]any{"example.com/x": "set"}},
		}},
		"status": map[string]any{"phase": "new"},
	}))
	g.Expect(setting(parse("spec.rules[2].host"), "b")(object)).To(MatchError(`there is no element "2"`))
	g.Expect(setting(parse("spec.rules[1].host.name"), "b")(object)).To(MatchError(`"name" is in no object`))
}
