package framework

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deletion-conformance/deletion-conformance/fixtures"
)

func TestWhetherADeleteBeginsADeletion(t *testing.T) {
	g := NewWithT(t)
	object := func(uid types.UID) *Object {
		made := fixtures.ConfigMap("object")
		made.SetUID(uid)
		return made
	}
	terminating, owned, namespace := object("b"), object("c"), fixtures.Namespace("e")
	terminating.SetDeletionTimestamp(new(metav1.Now()))
	owned.SetOwnerReferences([]metav1.OwnerReference{{UID: "a"}})
	namespace.SetUID("e")

	asked := deletions{}
	g.Expect(asked.begin(object("a"))).To(BeTrue())
	g.Expect(asked.begin(object("a"))).To(BeFalse(), "the first delete may have")
	g.Expect(asked.begin(object(""))).To(BeFalse(), "it is not known which object it is")
	g.Expect(asked.begin(terminating)).To(BeFalse())
	g.Expect(asked.begin(owned)).To(BeFalse(), "it may go with its owner")
	g.Expect(asked.begin(namespace)).To(BeTrue())
	g.Expect(asked.begin(object("d"))).To(BeFalse(), "it may go with the namespace")

	swept := deletions{}
	swept.sweep()
	g.Expect(swept.begin(object("a"))).To(BeFalse(), "it may have been in the collection")
}
