package claim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// maxName and maxText limit fields about an implementation, in characters. The schema of claims states the same.
const maxName, maxText = 80, 2000

// implementationFields are the fields of a file about an implementation.
const implementationFields = "organization, project, version, url, contact (a list) and reproduce"

// ReadImplementation reads the description of an implementation from a file of YAML or JSON. Errors are one line.
func ReadImplementation(file string) (v1alpha1.Implementation, error) {
	var implementation v1alpha1.Implementation
	content, err := readFile("implementation", file)
	if err != nil {
		return implementation, err
	}
	fail := func(text string) (v1alpha1.Implementation, error) {
		return implementation, fmt.Errorf("read implementation %s: %s; the fields are %s", file, report.Joined(text), implementationFields)
	}
	encoded, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return fail("not YAML: " + err.Error())
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&implementation)
	mistyped := (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return fail(fmt.Sprintf("%s is a %s; write text in quotes", mistyped.Field, mistyped.Value))
	case errors.As(err, &mistyped):
		return fail("it must have fields, as project: NAME")
	case err != nil:
		return fail(strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := checkImplementation(implementation); err != nil {
		return fail(err.Error())
	}
	return implementation, nil
}

// checkImplementation returns the first mistake in the description of an implementation.
func checkImplementation(of v1alpha1.Implementation) error {
	for _, field := range []struct {
		name, value string
		most        int
	}{
		{"organization", of.Organization, maxName},
		{"project", of.Project, maxName},
		{"version", of.Version, maxName},
		{"url", of.URL, maxText},
		{"contact", strings.Join(of.Contact, ", "), maxText},
		{"reproduce", of.Reproduce, maxText},
	} {
		switch {
		case strings.TrimSpace(field.value) == "":
			return fmt.Errorf("%s is missing", field.name)
		case utf8.RuneCountInString(field.value) > field.most:
			return fmt.Errorf("%s is longer than %d characters", field.name, field.most)
		case field.name != "reproduce" && strings.ContainsAny(field.value, "\n\r"):
			return fmt.Errorf("%s must be one line", field.name)
		case !utf8.ValidString(field.value) || strings.ContainsFunc(field.value, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }):
			return fmt.Errorf("%s contains invisible characters", field.name)
		}
	}
	isBlank := func(contact string) bool { return strings.TrimSpace(contact) == "" }
	if slices.ContainsFunc(of.Contact, isBlank) {
		return errors.New("contact is missing")
	}
	if page, err := url.Parse(of.URL); err != nil || page.Host == "" || page.Scheme != "https" && page.Scheme != "http" {
		return fmt.Errorf("url %.100q is not an address that begins with https://", of.URL)
	}
	return nil
}
