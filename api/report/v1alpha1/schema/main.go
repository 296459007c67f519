// Command schema writes the JSON schemas of report.json and of claims, docs/report.schema.json and docs/claim.schema.json, from the Go types
// of package v1alpha1 and their comments.
// Run it with `go generate ./api/...`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

//go:generate go run .

// document is a document with a published schema.
type document struct {
	// file is relative to this directory, in which go generate and go test run.
	file, title string
	// id is the last part of the schema's address.
	id   string
	kind string
	// closed schemas permit no unknown fields: `runner verify` refuses claims that have any.
	closed bool
	of     any
}

var documents = []document{
	{"../../../../docs/report.schema.json", "Deletion conformance report (report.json)", "report.json", v1alpha1.Kind, false, v1alpha1.Report{}},
	{"../../../../docs/claim.schema.json", "Claim of conformance (ConformanceReport)", "claim.json", v1alpha1.ClaimKind, true, v1alpha1.ConformanceReport{}},
}

// here is the path of this package, from which the path of the types is derived.
const here = "github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1/schema"

func main() {
	for _, published := range documents {
		content, err := schema(published)
		if err == nil {
			err = os.WriteFile(published.file, content, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "write the schema of %s: %v\n", published.id, err)
			os.Exit(1)
		}
	}
}

// schema returns the schema of a document. Reports may have unknown fields, so that one of a newer runner with the same apiVersion is valid
// too.
func schema(of document) ([]byte, error) {
	reflector := jsonschema.Reflector{AllowAdditionalProperties: !of.closed, Anonymous: true, Mapper: constants}
	if err := reflector.AddGoComments(here, "..", jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read the comments of the types: %w", err)
	}
	for name, comment := range reflector.CommentMap {
		reflector.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	s := reflector.Reflect(of.of)
	s.Title = of.title
	s.Comments = "Generated from the Go types of api/report/v1alpha1; run `go generate ./api/...` to change it."
	domain, version, _ := strings.Cut(v1alpha1.APIVersion, "/")
	s.ID = jsonschema.ID("https://" + domain + "/schemas/" + version + "/" + of.id)
	header := s.Definitions[reflect.TypeOf(of.of).Name()].Properties
	header.Value("apiVersion").Const = v1alpha1.APIVersion
	header.Value("kind").Const = of.kind

	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return content.Bytes(), nil
}

// constants returns the schemas of types that reflection does not describe well.
func constants(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[v1alpha1.Outcome]():
		return enum(v1alpha1.Outcomes)
	case reflect.TypeFor[v1alpha1.Conclusion]():
		return enum(v1alpha1.Conclusions)
	case reflect.TypeFor[v1alpha1.Operation]():
		return enum(v1alpha1.Operations)
	case reflect.TypeFor[v1alpha1.Level]():
		return enum(v1alpha1.Levels)
	case reflect.TypeFor[v1alpha1.Feature]():
		return enum(v1alpha1.Features)
	case reflect.TypeFor[v1alpha1.Profile]():
		return enum(v1alpha1.Profiles)
	case reflect.TypeFor[v1alpha1.ProfileConclusion]():
		return enum(v1alpha1.ProfileConclusions)
	case reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	}
	return nil
}

func enum[T ~string](values []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, value := range values {
		s.Enum = append(s.Enum, value)
	}
	return s
}
