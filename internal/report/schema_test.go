package report_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
)

func validator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile("../../docs/report.schema.json")
	if err != nil {
		t.Fatalf("docs/report.schema.json is no JSON schema: %v", err)
	}
	return s
}

// instance decodes a document for the validator.
func instance(t *testing.T, document string) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSchema_Valid(t *testing.T) {
	s := validator(t)
	reports := []v1alpha1.Report{
		reporttest.Sample(),
		{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind},
		{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Clusters: []v1alpha1.Cluster{{Name: "gone", Problem: "refused"}, {Name: "bare", Results: []v1alpha1.Result{reporttest.Unstarted("x.a", "a", v1alpha1.Passed)}}}},
	}
	for _, text := range reporttest.Hostile {
		reports = append(reports, reporttest.WithText(text))
	}
	for _, r := range reports {
		if err := s.Validate(instance(t, jsonOf(t, r))); err != nil {
			t.Error(err)
		}
	}
}

func TestSchema_Invalid(t *testing.T) {
	s := validator(t)
	valid := jsonOf(t, reporttest.Sample())
	for _, change := range [][2]string{
		{`"outcome": "passed"`, `"outcome": "fine"`},
		{`"level": "core"`, `"level": "soft"`},
		{`"start": "2026-03-04T05:06:07.89Z"`, `"start": "yesterday"`},
		{`"seconds": 1.5`, `"seconds": "long"`},
		{`"runID"`, `"run"`},
		{`"verb": "DELETE"`, `"verb": 7`},
		{`"apiVersion": "deletion-conformance.github.io/v1alpha1"`, `"apiVersion": "v1"`},
		{`"kind": "DeletionConformanceReport"`, `"kind": "List"`},
	} {
		broken := strings.Replace(valid, change[0], change[1], 1)
		if broken == valid {
			t.Fatalf("the report has no %s", change[0])
		}
		if err := s.Validate(instance(t, broken)); err == nil {
			t.Errorf("the schema takes %s", change[1])
		}
	}
}
