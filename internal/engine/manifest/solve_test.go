package manifest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/ext"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// ruled derives an object of a schema, as a server takes it that checks its rules like the API server.
func ruled(t *testing.T, document string) (*unstructured.Unstructured, *attempt, error) {
	t.Helper()
	of := &spec.Schema{}
	if err := yaml.UnmarshalStrict([]byte(document), of); err != nil {
		t.Fatal(err)
	}
	environment, err := cel.NewEnv(cel.Variable("self", cel.DynType), cel.OptionalTypes(), ext.Bindings(), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	a := &attempt{schema: of}
	a.create = func(_ context.Context, object *unstructured.Unstructured) error {
		if errs := broken(t, environment, a, object.Object, nil); len(errs) > 0 {
			return invalid(errs...)
		}
		return nil
	}
	object, err := a.run(t.Context(), databases)
	return object, a, err
}

// broken returns the rejections of a value and of its parts.
func broken(t *testing.T, environment *cel.Env, a *attempt, value any, path []string) []*field.Error {
	t.Helper()
	var errs []*field.Error
	for _, rule := range a.rulesAt(path) {
		name := field.NewPath(strings.Join(append(slices.Clone(path), parse(rule.FieldPath)...), "."))
		if len(path) == 0 {
			name = nil
		}
		message := rule.Message
		if message == "" {
			message = "failed rule: " + rule.Rule
		}
		if rule.MessageExpression != "" {
			message = "computed"
		}
		compiled, issues := environment.ParseSource(common.NewTextSource(rule.Rule))
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := environment.Program(compiled)
		if err != nil {
			t.Fatal(err)
		}
		switch result, _, err := program.Eval(map[string]any{"self": escaped(value)}); {
		case err != nil:
			errs = append(errs, field.Invalid(name, "object", fmt.Sprintf("%v evaluating rule: %s", err, message)))
		case result.Value() != true:
			errs = append(errs, field.Invalid(name, "object", message))
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			errs = append(errs, broken(t, environment, a, value[name], append(slices.Clone(path), name))...)
		}
	case []any:
		for i, element := range value {
			errs = append(errs, broken(t, environment, a, element, append(slices.Clone(path), strconv.Itoa(i)))...)
		}
	}
	return errs
}

// escaped returns a value with the names that rules use.
func escaped(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for name, inner := range value {
			if name == "namespace" {
				name = "__namespace__"
			}
			object[strings.ReplaceAll(name, "-", "__dash__")] = escaped(inner)
		}
		return object
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = escaped(value[i])
		}
		return list
	}
	return value
}

func TestSolver_Rules(t *testing.T) {
	const texts = `a: {type: string}, b: {type: string}, c: {type: string}`
	rule := func(properties string, rules ...string) string {
		var quoted []string
		for _, text := range rules {
			quoted = append(quoted, fmt.Sprintf("{rule: %q}", text))
		}
		return fmt.Sprintf(`{type: object, required: [spec], properties: {spec: {type: object, properties: {%s}, x-kubernetes-validations: [%s]}}}`,
			properties, strings.Join(quoted, ", "))
	}
	for name, schema := range map[string]string{
		"an optional field at the root": `{type: object, x-kubernetes-validations: [{rule: has(self.spec) && has(self.spec.address), message: an address is required}],
			properties: {spec: {type: object, properties: {address: {type: string}}}}}`,
		"a string that must not be empty, which its pattern permits": `{type: object, required: [spec], properties: {spec: {type: object, required: [group], properties: {
			group: {type: string, pattern: '^[a-z]*$', x-kubernetes-validations: [{rule: self != '', message: it is empty}]}}}}}`,
		"fields with escaped names":            rule(`name: {type: string}, namespace: {type: string}, a-b: {type: string}`, "has(self.name) && has(self.__namespace__) && has(self.a__dash__b)"),
		"constants":                            rule(`group: {type: string, pattern: '^[a-z.]*$'}, kind: {type: string}`, "self.group == 'example.com'", "self.kind in ['Route', 'Gateway']"),
		"an optional field of each element":    rule(`parts: {type: array, minItems: 2, items: {type: object, properties: {size: {type: integer}}}}`, "has(self.parts) && self.parts.all(part, part.size > 0)"),
		"an element":                           rule(`parts: {type: array, items: {type: object, properties: {main: {type: boolean}}}}`, "self.parts.exists(p, p.main)"),
		"one element":                          rule(`parts: {type: array, minItems: 2, items: {type: object, properties: {main: {type: boolean}}}}`, "self.parts.exists_one(p, has(p.main) && p.main)"),
		"elements that are filtered":           rule(`parts: {type: array, items: {type: object, properties: {main: {type: boolean}}}}`, "self.parts.filter(p, p.main).size() == 1"),
		"exactly one field by a list":          rule(texts, "[has(self.a), has(self.b), has(self.c)].exists_one(x, x)"),
		"exactly one field by a filter":        rule(texts, "[has(self.a), has(self.b), has(self.c)].filter(x, x).size() == 1"),
		"exactly one field by a sum":           rule(texts, "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) == 1"),
		"at least two fields":                  rule(texts, "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) > 1"),
		"one field or the other":               rule(texts, "has(self.a) != has(self.b)"),
		"fields that go together":              rule(texts, "has(self.a) == has(self.b)", "has(self.b)"),
		"a field that excludes another":        rule(texts, "has(self.a)", "!(has(self.a) && has(self.b))", "has(self.b) || has(self.c)"),
		"a field for a type":                   rule(`type: {type: string, enum: [A, B], default: A}, a: {type: string}, b: {type: string}`, "self.type == 'A' ? has(self.a) : has(self.b)", "self.type != 'A'"),
		"a field for a boolean":                rule(`main: {type: boolean}, a: {type: string}`, "has(self.main) && self.main", "!self.main || has(self.a)"),
		"a field for a type, by a comparison":  rule(`type: {type: string, enum: [A, B]}, a: {type: string}`, "has(self.type)", "(self.type == 'B') == has(self.a)", "has(self.a)"),
		"numbers in order":                     rule(`min: {type: integer, default: 7}, max: {type: integer}`, "has(self.min) && has(self.max) && self.min < self.max"),
		"a number between":                     rule(`port: {type: integer}`, "self.port >= 1024 && self.port <= 65535"),
		"a number that is not":                 rule(`port: {type: integer, default: 22}`, "has(self.port) && self.port != 22"),
		"a constant first":                     rule(`port: {type: integer}`, "1024 < self.port"),
		"a size of a list":                     rule(`names: {type: array, items: {type: string}}`, "size(self.names) >= 2"),
		"a size of a string":                   rule(`name: {type: string}`, "has(self.name)", "self.name.size() > 3"),
		"an element of a list":                 rule(`names: {type: array, items: {type: string}}`, "'main' in self.names"),
		"a key of a map":                       rule(`labels: {type: object, additionalProperties: {type: string}}`, "'app' in self.labels && self.labels['app'] == 'web'"),
		"a prefix and a suffix":                rule(`name: {type: string}`, "self.name.startsWith('a-') && self.name.endsWith('.com')"),
		"a part":                               rule(`name: {type: string}`, "self.name.contains('/')"),
		"a pattern":                            rule(`name: {type: string}`, "self.name.matches('^[a-z]+-[0-9]{3}$')"),
		"a duration":                           rule(`timeout: {type: string}`, "duration(self.timeout) > duration('1m')"),
		"an optional":                          rule(`name: {type: string}`, "self.?name.orValue('') == 'main'"),
		"an optional that is there":            rule(`name: {type: string}`, "self.?name.hasValue()"),
		"a value that is none of several":      rule(`name: {type: string, enum: [a, b, c]}`, "has(self.name) && !(self.name in ['a', 'b'])"),
		"a key that a macro names":             rule(`labels: {type: object, additionalProperties: {type: string}}`, "self.labels.exists(key, key == 'app')"),
		"times in order":                       rule(`from: {type: string, format: date-time}, to: {type: string, format: date-time}`, "timestamp(self.to) > timestamp(self.from)"),
		"fields in order that are both absent": rule(`min: {type: integer}, max: {type: integer}`, "self.max > self.min"),
		"a constant of a list, by a macro":     rule(`name: {type: string}`, "['x', 'y'].exists(one, self.name == one)"),
		"a variable":                           rule(`name: {type: string}`, "cel.bind(name, self.?name.orValue(''), name == 'x')"),
		"equal fields":                         rule(texts, "has(self.a) && has(self.b) && self.a == self.b", "self.b == 'x'"),
		"a computed message": `{type: object, required: [spec], properties: {spec: {type: object, properties: {a: {type: string}},
			x-kubernetes-validations: [{rule: has(self.a), messageExpression: '"computed"', fieldPath: .a}]}}}`,
		"values of a map": `{type: object, required: [spec], properties: {spec: {type: object, required: [sizes], properties: {sizes: {type: object, minProperties: 1,
			additionalProperties: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 0}]}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			object, a, err := ruled(t, schema)

			NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%v", object.Object)
			NewWithT(t).Expect(len(a.tried)).To(BeNumerically("<", maxAttempts/2), "%v", a.tried)
		})
	}
}

func TestSolver_Unsatisfiable(t *testing.T) {
	g := NewWithT(t)
	_, _, err := ruled(t, `{type: object, required: [spec], properties: {spec: {type: object, required: [code], properties: {code: {type: string}},
		x-kubernetes-validations: [{rule: "self.code.reverse() == 'abc'.upperAscii()", message: the code is wrong}]}}}`)

	rejected := &Rejected{}
	g.Expect(err).To(BeAssignableToTypeOf(rejected))
	g.Expect(err).To(MatchError(And(
		ContainSubstring("rejects all"), ContainSubstring("its rule `self.code.reverse() == 'abc'.upperAscii()`"), HaveSuffix("give a valid spec.code"))))
}

func TestSolver_InvalidRules(t *testing.T) {
	for _, text := range []string{"has()", "size() > 0", "self.filter(x).size() == 1", "cel.bind(x, x, x)", "self.all()", "matches()", "self.spec +", "[].exists(x, x)"} {
		of := &attempt{schema: &spec.Schema{}}
		for solution := range (solver{of}).satisfying([]rule{{Rule: text}}, &unstructured.Unstructured{Object: map[string]any{}}) {
			NewWithT(t).Expect(solution.Object).To(BeEmpty(), text)
		}
	}
}

func TestSolver_NameRule(t *testing.T) {
	g := NewWithT(t)
	for rule, name := range map[string]string{
		`self.metadata.name.matches('^(a|b)[.]example[.]com$')`: "a.example.com",
		`self.metadata.name == 'cluster'`:                       "cluster",
		`size(self.metadata.name) <= 12`:                        "aaaaaaaaaaaa",
	} {
		object, _, err := ruled(t, fmt.Sprintf(`{type: object, x-kubernetes-validations: [{rule: %q}], properties: {metadata: {type: object, properties: {name: {type: string}}}}}`, rule))

		g.Expect(object.GetName()).To(Equal(name))
		g.Expect(err).To(MatchError(ErrName))
		g.Expect(err).To(MatchError(And(ContainSubstring("the rule `"+rule+"`"), ContainSubstring("%q", name))))
	}
}
