// Package redact makes the output and reports of a run safe to publish. It always removes credentials and paths of this machine, and on
// request names and addresses of clusters. It is the last of several guards: recorded data contains no credentials (see
// framework/internal/client), but a server may echo a request, and an error may quote one.
package redact

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// removed replaces credentials.
const removed = "[redacted]"

// Redactor redacts texts. The zero value removes what looks like a credential.
type Redactor struct {
	// known replaces values that must not be shown; nil replaces none.
	known *strings.Replacer
	// folders shorten paths of this machine.
	folders []substitute
	// names matches the names of clusters, users and servers, which standIns replace; nil matches none.
	names    *regexp.Regexp
	standIns map[string]string
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

// shapes are the formats of credentials of any origin: PEM blocks (also truncated ones, and with escaped line ends), JSON Web Tokens,
// values after the name of an authentication scheme, and the user of a URL. Paths in Go files are those of the machine that built the
// runner.
var shapes = []substitute{
	{[]string{"-----begin "}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)(-----END [A-Z0-9 ]+-----|$)`), removed},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`), removed},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[\w.~+/=-]{16,}`), removed},
	{[]string{"://"}, regexp.MustCompile(`(\w://)[^/\s@"']+@`), "${1}" + removed + "@"},
	{[]string{".go:"}, regexp.MustCompile(`(^|[\s"'(=])/([^\s:"']+/)?([\w.-]+\.go:\d+)`), "$1$3"},
}

// Text redacts a text.
func (r *Redactor) Text(text string) string {
	if r.known != nil {
		text = r.known.Replace(text)
	}
	lower := strings.ToLower(text)
	for _, shape := range shapes {
		text = shape.in(text, lower)
	}
	for _, folder := range r.folders {
		text = folder.in(text, lower)
	}
	if r.names == nil {
		return text
	}
	text = r.names.ReplaceAllStringFunc(text, func(name string) string { return r.standIns[name] })
	return withoutAddresses(text)
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
		return r.standIns[name[:end]] + name[end:] // with a resource
	}
	return r.Text(name)
}

// Report returns a redacted copy of a report.
func (r *Redactor) Report(whole v1alpha1.Report) (v1alpha1.Report, error) {
	redacted, err := copied(whole)
	if err != nil {
		return v1alpha1.Report{}, err
	}
	for i := range redacted.Clusters {
		name := redacted.Clusters[i].Name
		r.within(reflect.ValueOf(&redacted.Clusters[i]))
		redacted.Clusters[i].Name = r.Cluster(name)
	}
	for i := range redacted.LeftOut {
		name := redacted.LeftOut[i].Cluster
		r.within(reflect.ValueOf(&redacted.LeftOut[i]))
		redacted.LeftOut[i].Cluster = r.Cluster(name)
	}
	return redacted, nil
}

// Result returns a redacted copy of a result.
func (r *Redactor) Result(result v1alpha1.Result) (v1alpha1.Result, error) {
	redacted, err := copied(result)
	r.within(reflect.ValueOf(&redacted))
	return redacted, err
}

// copied returns a deep copy. Reports contain only data that JSON can represent.
func copied[T any](value T) (T, error) {
	var same T
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &same)
	}
	if err != nil {
		return same, fmt.Errorf("copy a report to take out what is not for everybody: %w", err)
	}
	return same, nil
}

var (
	plainText = reflect.TypeFor[string]()
	catalogue = reflect.TypeFor[v1alpha1.Behavior]()
)

// within redacts every string in a value, except enumerations and texts of the catalogue.
func (r *Redactor) within(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		if value.CanSet() && value.Type() == plainText {
			value.SetString(r.Text(value.String()))
		}
	case reflect.Pointer:
		if !value.IsNil() {
			r.within(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			r.within(value.Index(i))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type() != catalogue {
				r.within(value.Field(i))
			}
		}
	}
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

// byLength orders texts so that longer ones are replaced first.
func byLength(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

// distinct returns the texts that are not empty, without duplicates, the longest first.
func distinct(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.SortFunc(texts, byLength)
	return slices.Compact(texts)
}
