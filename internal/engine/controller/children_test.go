package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

func TestIsChild(t *testing.T) {
	owner := fixtures.ConfigMap("object-x7k2q9")
	owner.SetUID("1")
	made := func(name string, changes ...func(*client.Object)) *client.Object {
		object := fixtures.Secret(name)
		object.SetUID("2")
		for _, change := range changes {
			change(object)
		}
		return object
	}
	elsewhere := fixtures.ConfigMap("other")
	elsewhere.SetUID("3")
	ownedBy := func(owner *client.Object) func(*client.Object) {
		return func(object *client.Object) {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		}
	}
	byController := func(object *client.Object) {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: builtIn}})
	}
	for _, test := range []struct {
		name string
		made *client.Object
		is   bool
	}{
		{"the object itself", owner, false},
		{"what it owns", made("any", ownedBy(owner)), true},
		{"what names it in a reference with another uid", made("any", func(object *client.Object) {
			object.SetOwnerReferences([]metav1.OwnerReference{{Name: owner.GetName(), UID: "0"}})
		}), true},
		{"what has its name in its own", made("object-x7k2q9-settings"), true},
		{"what has its name in a label", made("any", func(object *client.Object) {
			object.SetLabels(map[string]string{"app.kubernetes.io/instance": owner.GetName()})
		}), true},
		{"what has its name in an annotation", made("any", func(object *client.Object) {
			object.SetAnnotations(map[string]string{"of": "ns/object-x7k2q9"})
		}), true},
		{"what another owns, whatever it is called", made("object-x7k2q9-abc", ownedBy(elsewhere)), false},
		{"what a built-in controller makes without an owner", made("object-x7k2q9-abc", byController), false},
		{"what a built-in controller has written, too", made("any", ownedBy(owner), byController), true},
		{"anything else", made("kube-root-ca.crt"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(IsChild(test.made, owner)).To(Equal(test.is))
		})
	}
}
