package manifest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// maxAttempts bounds how many dry-runs an object is tried with.
const maxAttempts = 60

// attempt is the search for an object that the server takes.
type attempt struct {
	deriver
	// schema is the kind's.
	schema *spec.Schema
	// create tries an object.
	create func(context.Context, *unstructured.Unstructured) error
	tries  int
}

// run derives an object and mends it for as long as the server refuses fewer of its fields than before.
func (a *attempt) run(ctx context.Context, mapping *meta.RESTMapping) (*unstructured.Unstructured, error) {
	content, err := a.object(a.schema)
	if err != nil {
		return nil, fmt.Errorf("derive %s from its schema: %w: write its manifest by hand", mapping.Resource.GroupResource(), err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.Object["metadata"] = map[string]any{"name": "sample"}
	err = a.try(ctx, object)
	for causes := refusal(err); err != nil && a.tries < maxAttempts; causes = refusal(err) {
		better, mended := a.mend(ctx, object, causes)
		if better == nil {
			break
		}
		object, err = better, mended
	}
	if err != nil {
		return object, fmt.Errorf("the server refuses what the schema of %s suggests, so mend it by hand: %s",
			mapping.Resource.GroupResource(), strings.Join(strings.Fields(err.Error()), " "))
	}
	return object, nil
}

func (a *attempt) try(ctx context.Context, object *unstructured.Unstructured) error {
	a.tries++
	return a.create(ctx, object)
}

// mend changes the object where the server refused it, and returns the first change with which it refuses less, and what it
// says then. It is nil if none helps.
func (a *attempt) mend(ctx context.Context, object *unstructured.Unstructured, causes []metav1.StatusCause) (*unstructured.Unstructured, error) {
	for _, cause := range causes {
		for _, change := range a.changes(object, cause) {
			if a.tries >= maxAttempts {
				return nil, nil
			}
			candidate := object.DeepCopy()
			if change(candidate.Object) != nil {
				continue
			}
			err := a.try(ctx, candidate)
			if err == nil || isBetter(refusal(err), causes, cause) {
				return candidate, err
			}
		}
	}
	return nil, nil
}

// isBetter says whether the server says less now than before, or no more about what was changed: what it did not check until then
// may come up.
func isBetter(now, before []metav1.StatusCause, about metav1.StatusCause) bool {
	if len(now) == 0 {
		return false // it is refused for another reason, which no field names
	}
	return len(now) < len(before) || !slices.ContainsFunc(now, func(c metav1.StatusCause) bool {
		return c.Field == about.Field && c.Message == about.Message
	})
}

// change is something that may mend an object.
type change func(object map[string]any) error

// changes are what may help against a refusal: the field that is missing, a value that the message names, or what the rule or the
// message speaks of. Rules are those of CEL in the schema (x-kubernetes-validations).
func (a *attempt) changes(object *unstructured.Unstructured, cause metav1.StatusCause) []change {
	path := parse(fieldOf(cause))
	if len(path) == 0 || path[0] == "metadata" { // the metadata is the run's own
		return nil
	}
	var changes []change
	if there, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...); !isFilled(there) { // what was mended in it would be lost
		changes = append(changes, a.adding(path))
	}
	for _, quoted := range quotes.FindAllString(supported(cause.Message), -1) {
		if text, err := strconv.Unquote(quoted); err == nil {
			changes = append(changes, setting(path, text))
		}
	}
	for _, name := range a.spokenOf(path, cause) {
		changes = append(changes, a.adding(append(slices.Clone(path), name)))
	}
	if at := a.at(path); at != nil {
		for i := range at.OneOf { // of which the object may meet more than the one
			for _, name := range at.OneOf[i].Required {
				changes = append(changes, removing(append(slices.Clone(path), name)))
			}
		}
	}
	return changes
}

func isFilled(value any) bool {
	object, is := value.(map[string]any)
	return is && len(object) > 0
}

// fieldOf is the field that a cause is about. Where alternatives are not met it says so in its message only.
func fieldOf(cause metav1.StatusCause) string {
	if cause.Field != "<nil>" {
		return cause.Field
	}
	field, _ := strconv.Unquote(quotes.FindString(strings.TrimPrefix(cause.Message, `Invalid value: ""`)))
	return field
}

var (
	quotes = regexp.MustCompile(`"[^"]*"`)
	words  = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
)

// supported is the part of a message that lists which values there are, or names one.
func supported(message string) string {
	for _, introduction := range []string{"supported values:", "valid values:", "(such as"} {
		if _, values, lists := strings.Cut(message, introduction); lists {
			return values
		}
	}
	return ""
}

// spokenOf are the properties of the object at the path that its rules, or the server's message, speak of.
func (a *attempt) spokenOf(path []string, cause metav1.StatusCause) []string {
	at := a.at(path)
	if at == nil {
		return nil
	}
	spoken := cause.Message
	var rules []struct{ Rule, Message string }
	_ = at.Extensions.GetObject("x-kubernetes-validations", &rules) // none, where it is not as it should be
	for _, rule := range rules {
		if rule.Message == "" || strings.Contains(cause.Message, rule.Message) {
			spoken += " " + rule.Rule
		}
	}
	var names []string
	for _, word := range words.FindAllString(spoken, -1) {
		if _, is := at.Properties[word]; is && !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	return names
}

// at is the schema of what is at a path, nil if the schema does not say.
func (a *attempt) at(path []string) *spec.Schema {
	current := a.resolved(a.schema)
	for _, step := range path {
		property, known := current.Properties[step]
		switch {
		case known:
			current = a.resolved(&property)
		case current.Items != nil && current.Items.Schema != nil:
			current = a.resolved(current.Items.Schema)
		case current.AdditionalProperties != nil && current.AdditionalProperties.Schema != nil:
			current = a.resolved(current.AdditionalProperties.Schema)
		default:
			return nil
		}
	}
	return current
}

// adding puts what the schema suggests at a path, instead of what is there.
func (a *attempt) adding(path []string) change {
	return func(object map[string]any) error {
		at := a.at(path)
		if at == nil {
			return fmt.Errorf("the schema does not know %s", strings.Join(path, "."))
		}
		value, err := a.value(at)
		if err != nil {
			return err
		}
		if kindOf(at) == "array" && len(value.([]any)) == 0 && at.Items != nil && at.Items.Schema != nil {
			element, err := a.value(at.Items.Schema)
			if err != nil {
				return err
			}
			value = []any{element}
		}
		return setting(path, value)(object)
	}
}

// setting puts a value at a path.
func setting(path []string, value any) change {
	return func(object map[string]any) error {
		changed, err := with(object, path, value)
		if err == nil {
			maps.Copy(object, changed.(map[string]any))
		}
		return err
	}
}

// removing takes away what is at a path.
func removing(path []string) change {
	return func(object map[string]any) error {
		unstructured.RemoveNestedField(object, path...)
		return nil
	}
}

// with is what is there with a value put at the path. Objects on the way are made if need be.
func with(there any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch there := there.(type) {
	case nil:
		inner, err := with(nil, path[1:], value)
		return map[string]any{path[0]: inner}, err
	case map[string]any:
		inner, err := with(there[path[0]], path[1:], value)
		there[path[0]] = inner
		return there, err
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(there) {
			return there, fmt.Errorf("there is no element %q", path[0])
		}
		there[i], err = with(there[i], path[1:], value)
		return there, err
	}
	return there, fmt.Errorf("%q is in no object", path[0])
}

// steps are the parts of a field: names, and what is in brackets as it is.
var steps = regexp.MustCompile(`\[([^\]]*)\]|[^.\[\]]+`)

// parse reads a field as the API server names it: spec.rules[0].matches, metadata.labels[app.kubernetes.io/name].
func parse(field string) []string {
	var path []string
	for _, step := range steps.FindAllString(field, -1) {
		path = append(path, strings.Trim(step, "[]"))
	}
	return path
}
