package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Trial is an object that was tried.
type Trial struct {
	// Changes are the fields in which it differs from the object that was tried before it, with their values as JSON.
	Changes []string
	// Refusal is why the server rejected it; empty when it did not.
	Refusal string
}

// Rejected is the error for a resource of which the server rejects every object that was derived.
type Rejected struct {
	Resource schema.GroupResource
	// Err is the server's response to the object that came closest.
	Err error
	// Rules are the CEL rules of the schema that reject it, and Fields the fields that they read, or else the rejected fields.
	Rules, Fields []string
	// Tried are the objects, in the order of the dry-runs.
	Tried []Trial
}

// Unwrap returns the server's response.
func (r *Rejected) Unwrap() error { return r.Err }

// Error names what rejects the object, and what to give instead.
func (r *Rejected) Error() string {
	messages := strings.Join(strings.Fields(r.Err.Error()), " ")
	if r.NoConversion() {
		return fmt.Sprintf("the conversion webhook of %s cannot be called, so that no object of it can be created: %s; start the webhook", r.Resource, messages)
	}
	if len(r.Fields) == 0 {
		return fmt.Sprintf("the server rejects an object that was derived from the schema of %s: %s", r.Resource, messages)
	}
	by := ""
	if len(r.Rules) > 0 {
		by = fmt.Sprintf(" because of its rule `%s`", strings.Join(r.Rules, "` and `"))
	}
	return fmt.Sprintf("the server rejects all %d objects that were derived from the schema of %s%s: %s; give a valid %s",
		len(r.Tried), r.Resource, by, messages, strings.Join(r.Fields, " and "))
}

// isServerError reports whether the server failed, whatever the object is: a webhook cannot be called.
func isServerError(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// NoConversion reports whether the object could not be created because a conversion webhook could not be called, whatever the object is.
func (r *Rejected) NoConversion() bool {
	return isServerError(r.Err) && strings.Contains(r.Err.Error(), "conversion webhook for ")
}

// rejected returns the error for an object that the server rejects.
func (a *attempt) rejected(resource schema.GroupResource, err error) *Rejected {
	rejected := &Rejected{Resource: resource, Err: err, Tried: a.tried}
	for _, cause := range refusal(err) {
		fields := []string{fieldOf(cause)}
		for i, rule := range a.rulesOf(cause) {
			if read := rule.reads(); len(read) > 0 && i == 0 {
				fields = read
			}
			if text := strings.Join(strings.Fields(rule.Rule), " "); !slices.Contains(rejected.Rules, text) {
				rejected.Rules = append(rejected.Rules, text)
			}
		}
		for _, field := range fields {
			if field != "" && !slices.Contains(rejected.Fields, field) {
				rejected.Fields = append(rejected.Fields, field)
			}
		}
	}
	return rejected
}

// reads returns the fields that a rule reads, without those of elements of lists.
func (r rule) reads() []string {
	parsed := r.parsed()
	if parsed == nil {
		return nil
	}
	var fields []string
	in := scope{"self": {path: r.path}}
	ast.PreOrderVisit(parsed, ast.NewExprVisitor(func(part ast.Expr) {
		path, ok := condition{part, in, true}.place()
		field := strings.Join(path, ".")
		if !ok || field == "" || part.Kind() == ast.IdentKind && part != parsed {
			return
		}
		if !slices.ContainsFunc(fields, func(known string) bool { return known == field || strings.HasPrefix(known, field+".") }) {
			fields = append(fields, field)
		}
	}))
	return fields
}

// differences returns the fields in which a value differs from an earlier one.
func differences(before, after any, path string) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	old, wasObject := before.(map[string]any)
	fields, isObject := after.(map[string]any)
	if was, are := before.([]any); are && reflect.TypeOf(after) == reflect.TypeOf(before) && len(was) == len(after.([]any)) {
		old, wasObject = indexed(was), true
		fields, isObject = indexed(after.([]any)), true
	}
	if !wasObject || !isObject || len(old) == 0 {
		content, err := json.Marshal(after)
		if err != nil {
			return []string{path}
		}
		return []string{strings.TrimPrefix(path+": "+string(content), ": ")}
	}
	names := maps.Clone(old)
	maps.Copy(names, fields)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if _, has := fields[name]; !has {
			all = append(all, at+" removed")
			continue
		}
		all = append(all, differences(old[name], fields[name], at)...)
	}
	return all
}

// indexed returns a list as an object.
func indexed(list []any) map[string]any {
	object := map[string]any{}
	for i, element := range list {
		object[strconv.Itoa(i)] = element
	}
	return object
}
