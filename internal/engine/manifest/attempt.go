package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// maxAttempts limits the dry-runs for one object.
const maxAttempts = 60

// attempt is the search for an object that the server accepts.
type attempt struct {
	deriver
	// schema is the schema of the kind.
	schema *spec.Schema
	// create creates an object as a dry-run.
	create func(context.Context, *unstructured.Unstructured) error
	// tried are the objects so far, and last is the latest one.
	tried []Trial
	last  map[string]any
	// named are the rules that permit only the name of the object.
	named []string
}

// run derives an object and repairs it as long as the server rejects fewer fields than before. It fails with Rejected, and returns the
// object that came closest.
func (a *attempt) run(ctx context.Context, mapping *meta.RESTMapping) (*unstructured.Unstructured, error) {
	content, err := a.object(a.schema)
	if err != nil {
		return nil, fmt.Errorf("derive %s from its schema: %w: write a manifest", mapping.Resource.GroupResource(), err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.Object["metadata"] = map[string]any{"name": runName}
	err = a.try(ctx, object)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrNoNamespace) {
		return nil, fmt.Errorf("try an object of %s: %w", mapping.Resource.GroupResource(), err)
	}
	for err != nil && len(a.tried) < maxAttempts && !isServerError(err) {
		better, mended := a.mend(ctx, object, refusal(err))
		if better == nil {
			better, mended = a.choose(ctx, object, err)
		}
		if better == nil {
			break
		}
		if better.GetName() != object.GetName() {
			a.named = a.rejected(mapping.Resource.GroupResource(), err).Rules
		}
		object, err = better, mended
	}
	if name := object.GetName(); err == nil && name != runName {
		return object, fmt.Errorf("the rule `%s` of %s permits other names, such as %q: %w",
			strings.Join(a.named, "` and `"), mapping.Resource.GroupResource(), name, ErrName)
	}
	object.SetName(sampleName)
	if err != nil {
		return object, a.rejected(mapping.Resource.GroupResource(), err)
	}
	return object, nil
}

// try tries an object and notes the result.
func (a *attempt) try(ctx context.Context, object *unstructured.Unstructured) error {
	err := a.create(ctx, object)
	trial := Trial{Changes: differences(a.last, object.Object, "")}
	if err != nil {
		trial.Refusal = err.Error()
	}
	a.tried, a.last = append(a.tried, trial), object.DeepCopy().Object
	return err
}

// mend repairs the object where the server rejected it. It returns the first change that reduces the rejected fields, and the remaining
// causes; nil if there is none.
func (a *attempt) mend(ctx context.Context, object *unstructured.Unstructured, causes []metav1.StatusCause) (*unstructured.Unstructured, error) {
	for _, cause := range causes {
		for candidate := range a.candidates(object, cause) {
			if len(a.tried) >= maxAttempts {
				return nil, nil
			}
			err := a.try(ctx, candidate)
			if err == nil || isBetter(refusal(err), causes, cause) {
				return candidate, err
			}
		}
	}
	return nil, nil
}

// maxCandidates limits the objects for one rejection, so that some attempts are left for others.
const maxCandidates = 20

// candidates returns different objects that may resolve a rejection: first those that satisfy the rules of the value, then those that
// satisfy the rejecting rules only, then those of single changes.
func (a *attempt) candidates(object *unstructured.Unstructured, cause metav1.StatusCause) objects {
	return func(yield func(*unstructured.Unstructured) bool) {
		seen := []*unstructured.Unstructured{object}
		isNew := func(candidate *unstructured.Unstructured) bool {
			return !slices.ContainsFunc(seen, func(one *unstructured.Unstructured) bool { return reflect.DeepEqual(one, candidate) })
		}
		for _, some := range []objects{a.satisfying(object, cause), solver{a}.changing(object, a.changes(object, cause)...)} {
			count := 0
			for candidate := range some {
				if count++; count > maxCandidates {
					break
				}
				if isNew(candidate) && !yield(candidate) {
					return
				}
				seen = append(seen, candidate)
			}
		}
	}
}

// satisfying returns objects that satisfy the rules of a rejection: together with the other rules of the same value, and alone.
func (a *attempt) satisfying(object *unstructured.Unstructured, cause metav1.StatusCause) objects {
	about := a.rulesOf(cause)
	if len(about) == 0 {
		return func(func(*unstructured.Unstructured) bool) {}
	}
	return func(yield func(*unstructured.Unstructured) bool) {
		for _, rules := range [][]rule{append(slices.Clone(about), a.rulesAt(about[0].path)...), about} {
			count := 0
			for solution := range (solver{a}).satisfying(rules, object) {
				if count++; count > maxCandidates/2 {
					break
				}
				if !yield(solution) {
					return
				}
			}
		}
	}
}

// choose tries the other values of each enumeration in the object: rules, policies and webhooks may accept only some of them, and may not
// name the field. It returns the first object of which the server rejects fewer fields, and the error for it. It is nil if there is none.
func (a *attempt) choose(ctx context.Context, object *unstructured.Unstructured, refused error) (*unstructured.Unstructured, error) {
	before := refusal(refused)
	for _, chosen := range a.choices(object.Object, nil) {
		for _, value := range chosen.others {
			candidate := object.DeepCopy()
			if len(a.tried) >= maxAttempts || setting(chosen.path, value)(candidate.Object) != nil {
				return nil, nil //nolint:nilerr // there is none
			}
			err := a.try(ctx, candidate)
			if now := refusal(err); err == nil || len(now) > 0 && len(now) < len(before) {
				return candidate, err
			}
		}
	}
	return nil, nil
}

// choice is a field whose value is one of an enumeration, and the other values.
type choice struct {
	path   []string
	others []any
}

// choices returns those in a value at a path, in the order of the fields.
func (a *attempt) choices(value any, path []string) []choice {
	var choices []choice
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			choices = append(choices, a.choices(value[name], append(slices.Clone(path), name))...)
		}
	case []any:
		for i, element := range value {
			choices = append(choices, a.choices(element, append(slices.Clone(path), strconv.Itoa(i)))...)
		}
	default:
		if at := a.at(path); at != nil && len(at.Enum) > 1 {
			chosen := choice{path: path}
			for _, other := range at.Enum {
				if other = plain(other); !reflect.DeepEqual(other, value) {
					chosen.others = append(chosen.others, other)
				}
			}
			choices = append(choices, chosen)
		}
	}
	return choices
}

// isBetter reports whether the server rejects fewer fields than before, or no longer rejects the changed field. Repairs can reveal fields
// that were not checked before.
func isBetter(now, before []metav1.StatusCause, about metav1.StatusCause) bool {
	if len(now) == 0 {
		return false // rejected for a reason that names no field
	}
	return len(now) < len(before) || !slices.ContainsFunc(now, func(c metav1.StatusCause) bool {
		return c.Field == about.Field && c.Message == about.Message
	})
}

// change is a change that may repair an object.
type change func(object map[string]any) error

// changes returns changes that may resolve a rejection: adding the missing field, setting a value that the message names, or adding
// properties that the message mentions.
func (a *attempt) changes(object *unstructured.Unstructured, cause metav1.StatusCause) []change {
	path := parse(fieldOf(cause))
	if len(path) == 0 || path[0] == "metadata" { // the run sets the metadata
		return nil
	}
	var changes []change
	if there, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...); !isFilled(there) { // replacing a filled field would lose earlier repairs
		changes = append(changes, a.adding(path))
	}
	for _, quoted := range quotes.FindAllString(supported(cause.Message), -1) {
		if text, err := strconv.Unquote(quoted); err == nil {
			changes = append(changes, setting(path, text))
		}
	}
	for _, name := range a.mentioned(path, cause) {
		changes = append(changes, a.adding(append(slices.Clone(path), name)))
	}
	if at := a.at(path); at != nil {
		for i := range at.OneOf { // the object may match several of the alternatives
			for _, name := range at.OneOf[i].Required {
				changes = append(changes, removing(append(slices.Clone(path), name)))
			}
		}
	}
	return changes
}

func isFilled(value any) bool {
	object, ok := value.(map[string]any)
	return ok && len(object) > 0
}

// fieldOf returns the field of a cause. For unmatched alternatives only the message contains it.
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

// supported returns the part of a message that lists supported values.
func supported(message string) string {
	for _, introduction := range []string{"supported values:", "valid values:", "(such as"} {
		if _, values, lists := strings.Cut(message, introduction); lists {
			return values
		}
	}
	return ""
}

// mentioned returns the properties of the object at a path that the server's message mentions.
func (a *attempt) mentioned(path []string, cause metav1.StatusCause) []string {
	at := a.at(path)
	if at == nil {
		return nil
	}
	var names []string
	for _, word := range words.FindAllString(cause.Message, -1) {
		if _, ok := at.Properties[word]; ok && !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	return names
}

// at returns the schema at a path; nil when the schema does not describe it.
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

// adding replaces the value at a path by the one that the schema suggests.
func (a *attempt) adding(path []string) change {
	return func(object map[string]any) error {
		at := a.at(path)
		if at == nil {
			return fmt.Errorf("the schema does not contain %s", strings.Join(path, "."))
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

// setting sets the value at a path.
func setting(path []string, value any) change {
	return func(object map[string]any) error {
		changed, err := with(object, path, value)
		if err == nil {
			maps.Copy(object, changed.(map[string]any))
		}
		return err
	}
}

// removing removes the value at a path.
func removing(path []string) change {
	return func(object map[string]any) error {
		unstructured.RemoveNestedField(object, path...)
		return nil
	}
}

// with sets a value at a path and creates missing parents.
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

// steps matches the parts of a field: names, and the content of brackets.
var steps = regexp.MustCompile(`\[([^\]]*)\]|[^.\[\]]+`)

// parse splits a field in the API server's notation: spec.rules[0].matches, metadata.labels[app.kubernetes.io/name].
func parse(field string) []string {
	var path []string
	for _, step := range steps.FindAllString(field, -1) {
		path = append(path, strings.Trim(step, "[]"))
	}
	return path
}
