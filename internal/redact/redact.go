// Package redact makes what a run says and reports fit to be shown to everybody: credentials and paths of this machine are
// taken out always, and where the user wants that, names and addresses of clusters too. It is the last of several guards: what
// reports are made of holds no credentials (see framework/internal/client), but a server may echo what it was sent, and an error
// may quote what it is about.
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

// removed stands where a credential stood.
const removed = "[redacted]"

// Redactor takes out of texts what is not for everybody. The zero value takes out what looks like a credential.
type Redactor struct {
	// known replaces values that must not be shown; nil replaces none.
	known *strings.Replacer
	// folders are those of this machine whose paths are shortened.
	folders []substitute
	// names finds the names of clusters, users and servers, which are replaced by what stands for them; nil finds none.
	names    *regexp.Regexp
	standIns map[string]string
}

// substitute is a pattern and what stands for what it finds.
type substitute struct {
	// only is a part of everything that the pattern finds, in lower case, or several of which it has one: a text without them, as
	// almost all are, is not searched.
	only    []string
	pattern *regexp.Regexp
	by      string
}

// in is a text with what stands for what the pattern finds; lower is the same text in lower case.
func (s substitute) in(text, lower string) string {
	if !slices.ContainsFunc(s.only, func(part string) bool { return strings.Contains(lower, part) }) {
		return text
	}
	return s.pattern.ReplaceAllString(text, s.by)
}

// shapes are what credentials look like wherever they come from: blocks of PEM (also cut ones, and with their line ends
// escaped), JSON Web Tokens, what follows the name of an authentication scheme, and who a URL is asked as. The folders of a
// file of Go's are those of the machine that built the runner.
var shapes = []substitute{
	{[]string{"-----begin "}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)(-----END [A-Z0-9 ]+-----|$)`), removed},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`), removed},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[\w.~+/=-]{16,}`), removed},
	{[]string{"://"}, regexp.MustCompile(`(\w://)[^/\s@"']+@`), "${1}" + removed + "@"},
	{[]string{".go:"}, regexp.MustCompile(`(^|[\s"'(=])/([^\s:"']+/)?([\w.-]+\.go:\d+)`), "$1$3"},
}

// Text is a text without what is not for everybody.
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

// Cluster is what a cluster is called in reports.
func (r *Redactor) Cluster(name string) string {
	if r.names == nil {
		return r.Text(name)
	}
	if standIn := r.standIns[name]; standIn != "" {
		return standIn
	}
	if end := strings.LastIndex(name, " "); end > 0 && r.standIns[name[:end]] != "" {
		return r.standIns[name[:end]] + name[end:] // a resource on it
	}
	return r.Text(name)
}

// Report is a copy of a report without what is not for everybody.
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

// Result is a copy of a result without what is not for everybody.
func (r *Redactor) Result(result v1alpha1.Result) (v1alpha1.Result, error) {
	redacted, err := copied(result)
	r.within(reflect.ValueOf(&redacted))
	return redacted, err
}

// copied is a copy that shares nothing with what it is a copy of. What reports hold is data that JSON can say.
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

// within redacts every text that a value holds. Enumerations and the catalogue's own words stay as they are.
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

// Error is an error that says no more than everybody may know, and is what it was otherwise; nil for none.
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

// byLength orders texts so that one which holds another is found before it.
func byLength(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

// distinct are texts that are not empty, each once, the longest first.
func distinct(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.SortFunc(texts, byLength)
	return slices.Compact(texts)
}
