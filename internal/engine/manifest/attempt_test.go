package manifest

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

var databases = &meta.RESTMapping{
	Resource:         schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "databases"},
	GroupVersionKind: schema.GroupVersionKind{Group: "acme.io", Version: "v1", Kind: "Database"},
}

// attempted derives a database with an engine and a tier, as a server takes it that refuses some.
func attempted(t *testing.T, refuse func(engine, tier string) error) (*unstructured.Unstructured, error) {
	t.Helper()
	of := &spec.Schema{}
	if err := yaml.Unmarshal([]byte(`{type: object, required: [spec], properties: {spec: {type: object, required: [engine, tier], properties: {
		engine: {type: string, enum: [mysql, postgres, sqlite]}, tier: {type: string, enum: [gold, silver]}}}}}`), of); err != nil {
		t.Fatal(err)
	}
	a := &attempt{deriver: deriver{}, schema: of, create: func(_ context.Context, object *unstructured.Unstructured) error {
		engine, _, _ := unstructured.NestedString(object.Object, "spec", "engine")
		tier, _, _ := unstructured.NestedString(object.Object, "spec", "tier")
		return refuse(engine, tier)
	}}
	return a.run(t.Context(), databases)
}

// invalid is the refusal of fields.
func invalid(errs ...*field.Error) error {
	return apierrors.NewInvalid(databases.GroupVersionKind.GroupKind(), "sample", errs)
}

func TestAttempt_Enumeration(t *testing.T) {
	engine, tier := field.NewPath("spec", "engine"), field.NewPath("spec", "tier")
	for _, test := range []struct {
		name   string
		refuse func(engine, tier string) error
	}{
		{"a rule of the field", func(is, _ string) error {
			if is != "sqlite" {
				return invalid(field.Invalid(engine, is, "no longer supported"))
			}
			return nil
		}},
		{"a rule of the object", func(is, _ string) error {
			if is != "sqlite" {
				return invalid(field.Invalid(field.NewPath("spec"), nil, "this is not supported"))
			}
			return nil
		}},
		{"a webhook that names no field", func(is, _ string) error {
			if is != "sqlite" {
				return apierrors.NewForbidden(databases.Resource.GroupResource(), "sample", errors.New("denied the request"))
			}
			return nil
		}},
		{"two fields", func(is, of string) error {
			var errs []*field.Error
			if is != "sqlite" {
				errs = append(errs, field.Invalid(engine, is, "no longer supported"))
			}
			if of != "silver" {
				errs = append(errs, field.Invalid(tier, of, "sold out"))
			}
			if len(errs) > 0 {
				return invalid(errs...)
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			object, err := attempted(t, test.refuse)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(object.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("engine", "sqlite")))
		})
	}
}

func TestAttempt_AlwaysRefused(t *testing.T) {
	g := NewWithT(t)
	object, err := attempted(t, func(string, string) error { return errors.New("denied the request") })
	g.Expect(object.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("engine", "mysql")))
	g.Expect(err).To(MatchError(HaveSuffix(": denied the request")))
}

func TestAttempt_ServerError(t *testing.T) {
	g := NewWithT(t)
	tries := 0
	_, err := attempted(t, func(string, string) error {
		tries++
		return apierrors.NewInternalError(errors.New(`conversion webhook for acme.io/v1, Kind=Database failed: service "absent" not found`))
	})
	g.Expect(err).To(MatchError(HavePrefix("the conversion webhook of databases.acme.io cannot be called")))
	g.Expect(tries).To(Equal(1))
}

func TestAttempt_Forbidden(t *testing.T) {
	g := NewWithT(t)
	tries := 0
	object, err := attempted(t, func(string, string) error {
		tries++
		return ErrForbidden
	})
	g.Expect(object).To(BeNil())
	g.Expect(err).To(MatchError(ErrForbidden))
	g.Expect(tries).To(Equal(1))
}
