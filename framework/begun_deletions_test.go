package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestDeletions(t *testing.T) {
	object := func(uid types.UID) *Object {
		made := fixtures.ConfigMap("object")
		made.SetUID(uid)
		return made
	}
	terminating, owned, namespace := object("a"), object("a"), fixtures.Namespace("n")
	terminating.SetDeletionTimestamp(new(metav1.Now()))
	owned.SetOwnerReferences([]metav1.OwnerReference{{UID: "o"}})
	for _, test := range []struct {
		name            string
		noted           []*Object
		object          *Object
		begins, repeats bool
	}{
		{"the first", nil, object("a"), true, false},
		{"the first of this object", []*Object{object("b")}, object("a"), true, false},
		{"the second", []*Object{object("a")}, object("a"), false, true},
		{"of what is terminating", nil, terminating, false, true},
		{"of what may go with its owner", nil, owned, false, false},
		{"of what may go with its namespace", []*Object{namespace}, object("a"), false, false},
		{"of an object that nobody knows", nil, object(""), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			deletions := deletions{}
			for _, noted := range test.noted {
				deletions.note(noted)
			}
			g.Expect(deletions.begins(test.object)).To(Equal(test.begins))
			g.Expect(deletions.repeats(test.object)).To(Equal(test.repeats))
		})
	}
}

func TestDeletions_AfterCollection(t *testing.T) {
	g := NewWithT(t)
	object := fixtures.ConfigMap("object")
	object.SetUID("a")
	deletions := deletions{}
	deletions.sweep()
	g.Expect(deletions.begins(object)).To(BeFalse())
}
