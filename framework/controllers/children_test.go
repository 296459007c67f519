package controllers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/framework"
)

func TestIsChild(t *testing.T) {
	owner := fixtures.ConfigMap("object-x7k2q9")
	owner.SetUID("1")
	made := func(name string, changes ...framework.ObjectOption) *framework.Object {
		object := fixtures.Secret(name)
		object.SetUID("2")
		for _, change := range changes {
			change(object)
		}
		return object
	}
	elsewhere := fixtures.ConfigMap("other")
	elsewhere.SetUID("3")
	byController := func(object *framework.Object) {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: builtIn}})
	}
	for _, test := range []struct {
		name string
		made *framework.Object
		is   bool
	}{
		{"the object itself", owner, false},
		{"what it owns", made("any", framework.OwnedBy(owner)), true},
		{"what names it in a reference with another uid", made("any", func(object *framework.Object) {
			object.SetOwnerReferences([]metav1.OwnerReference{{Name: owner.GetName(), UID: "0"}})
		}), true},
		{"what has its name in its own", made("object-x7k2q9-settings"), true},
		{"what has its name in a label", made("any", framework.WithLabel("app.kubernetes.io/instance", owner.GetName())), true},
		{"what has its name in an annotation", made("any", framework.WithMetadata(map[string]any{"annotations": map[string]any{"of": "ns/object-x7k2q9"}})), true},
		{"what another owns, whatever it is called", made("object-x7k2q9-abc", framework.OwnedBy(elsewhere)), false},
		{"what a built-in controller makes without an owner", made("object-x7k2q9-abc", byController), false},
		{"what a built-in controller has written, too", made("any", framework.OwnedBy(owner), byController), true},
		{"anything else", made("kube-root-ca.crt"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(isChild(test.made, owner)).To(Equal(test.is))
		})
	}
}

func TestIsLater(t *testing.T) {
	g := NewWithT(t)
	g.Expect(isLater("1000", "999")).To(BeTrue(), "they are numbers")
	g.Expect(isLater("999", "1000")).To(BeFalse())
	g.Expect(isLater("999", "999")).To(BeFalse())
	g.Expect(isLater("abc", "999")).To(BeFalse(), "of others nothing is known")
}
