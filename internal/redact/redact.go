// Package redact makes the output and reports of a run safe to publish. It always removes credentials and paths of this machine, and on
// request names and addresses of clusters. It is the last of several guards: recorded data contains no credentials (see
// internal/kube/client), but a server may echo a request, and an error may quote one.
package redact

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Redactor redacts texts. The zero value removes what looks like a credential. It is safe for concurrent use.
type Redactor struct {
	secrets
	// paths replaces the paths of files; nil replaces none.
	paths *strings.Replacer
	// folders shorten paths of this machine.
	folders []substitute
	// standIns replace names of clusters, users and servers, and names matches them in texts; nil matches none.
	standIns map[string]string
	names    *regexp.Regexp
}

// substitute is a pattern with its replacement.
type substitute struct {
	// only are strings of which every match contains one, in lower case: a text without them, as almost all are, is not searched.
	only    []string
	pattern *regexp.Regexp
	by      string
}

// in replaces matches in a text; lower is the same text in lower case.
func (s substitute) in(text, lower string) string {
	if !slices.ContainsFunc(s.only, func(part string) bool { return strings.Contains(lower, part) }) {
		return text
	}
	return s.pattern.ReplaceAllString(text, s.by)
}

// Text redacts a text.
func (r *Redactor) Text(text string) string {
	text = r.Credentials(text)
	if r.paths != nil {
		text = r.paths.Replace(text)
	}
	lower := strings.ToLower(text)
	for _, folder := range r.folders {
		text = folder.in(text, lower)
	}
	if r.names == nil {
		return text
	}
	return withoutAddresses(r.withoutNames(text))
}

// Cluster redacts the name of a cluster.
func (r *Redactor) Cluster(name string) string {
	if r.names == nil {
		return r.Text(name)
	}
	if standIn := r.standIns[name]; standIn != "" {
		return standIn
	}
	if end := strings.LastIndex(name, " "); end > 0 && r.standIns[name[:end]] != "" {
		return r.standIns[name[:end]] + r.Text(name[end:]) // with a resource
	}
	return r.Text(name)
}

// user redacts a user.
func (r *Redactor) user(name string) string {
	if redacted := r.Text(name); r.names == nil || name == "" || redacted != name || builtIn(name) {
		return redacted
	}
	return "user"
}

// Report returns a redacted copy of a report.
func (r *Redactor) Report(whole v1alpha1.Report) (v1alpha1.Report, error) { return Copy(r, whole) }

// Copy returns a redacted deep copy of data that JSON can represent.
func Copy[T any](r *Redactor, value T) (T, error) {
	var same T
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &same)
	}
	if err != nil {
		return same, fmt.Errorf("copy the report for redaction: %w", err)
	}
	copying{r, map[string]string{}}.within(reflect.ValueOf(&same).Elem())
	return same, nil
}

// copying is a Copy that goes on. Most texts of a report are in it many times, so they are redacted once.
type copying struct {
	*Redactor
	texts map[string]string
}

// Text redacts a text.
func (r copying) Text(text string) string {
	redacted, known := r.texts[text]
	if !known {
		redacted = r.Redactor.Text(text)
		r.texts[text] = redacted
	}
	return redacted
}

// within redacts every string in a value that can be set.
func (r copying) within(value reflect.Value) {
	if !value.CanSet() {
		return // an unexported field of another package's type, such as time.Time
	}
	switch value.Kind() { //nolint:exhaustive // the others contain no text
	case reflect.String:
		if !slices.Contains(enumerations, value.Interface()) {
			value.SetString(r.Text(value.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			value.Set(r.replaced(value))
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			r.within(value.Index(i))
		}
	case reflect.Map:
		redacted := reflect.MakeMapWithSize(value.Type(), value.Len())
		for entries := value.MapRange(); entries.Next(); {
			redacted.SetMapIndex(r.redacted(entries.Key()), r.redacted(entries.Value()))
		}
		if !value.IsNil() {
			value.Set(redacted)
		}
	case reflect.Struct:
		r.withinStruct(value)
	}
}

// redacted returns a redacted copy of a value.
func (r copying) redacted(value reflect.Value) reflect.Value {
	redacted := reflect.New(value.Type()).Elem()
	redacted.Set(value)
	r.within(redacted)
	return redacted
}

// replaced returns a redacted pointer or interface.
func (r copying) replaced(value reflect.Value) reflect.Value {
	redacted := r.redacted(value.Elem())
	if value.Kind() == reflect.Pointer {
		return redacted.Addr()
	}
	return redacted
}

// withinStruct redacts the fields of a struct. The words of the catalog, and what identifies the format, are public.
func (r copying) withinStruct(value reflect.Value) {
	restore := func() {}
	switch known := value.Addr().Interface().(type) {
	case *v1alpha1.Behavior:
		return
	case *v1alpha1.Report:
		version, kind := known.APIVersion, known.Kind
		restore = func() { known.APIVersion, known.Kind = version, kind }
	case *v1alpha1.Cluster:
		name := r.Cluster(known.Name)
		restore = func() { known.Name = name }
	case *v1alpha1.LeftOut:
		name := r.Cluster(known.Cluster)
		restore = func() { known.Cluster = name }
	case *v1alpha1.Review:
		user := r.user(known.User)
		restore = func() { known.User = user }
	}
	for i := range value.NumField() {
		r.within(value.Field(i))
	}
	restore()
}

// enumerations are values of the report's types that the runner chooses. Other values of these types are redacted.
var enumerations = slices.Concat(anys(v1alpha1.Outcomes), anys(v1alpha1.Conclusions), anys(v1alpha1.Features), anys(v1alpha1.Levels), anys(v1alpha1.Operations),
	[]any{v1alpha1.OK, v1alpha1.Notice, v1alpha1.Skips, v1alpha1.Unknown})

func anys[T any](values []T) []any {
	var all []any
	for _, value := range values {
		all = append(all, value)
	}
	return all
}

// Error redacts an error and keeps what it wraps; nil for nil.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	return &redactedError{error: err, text: r.Text(err.Error())}
}

type redactedError struct {
	error
	text string
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.error }

// Writer returns a writer that redacts what it passes on. Each write must consist of whole lines.
func (r *Redactor) Writer(out io.Writer) io.Writer { return writer{r, out} }

type writer struct {
	redactor *Redactor
	out      io.Writer
}

func (w writer) Write(lines []byte) (int, error) {
	if _, err := io.WriteString(w.out, w.redactor.Text(string(lines))); err != nil {
		return 0, err
	}
	return len(lines), nil
}
