package describe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// writtenBy is an object with entries in managedFields.
func writtenBy(entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetManagedFields(entries)
	return object
}

func entryOf(manager, subresource string, second int64) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Unix(second, 0))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &at}
}

func TestWriters(t *testing.T) {
	g := NewWithT(t)
	before := writtenBy(entryOf("creator", "", 1), entryOf("operator", "", 2))
	g.Expect(Writers(nil, before)).To(Equal([]string{"creator", "operator"}))
	g.Expect(Writers(before, before)).To(BeEmpty())
	g.Expect(Writers(before, writtenBy(entryOf("creator", "", 1), entryOf("operator", "", 3)))).To(Equal([]string{"operator"}), "another time")
	g.Expect(Writers(before, writtenBy(entryOf("creator", "", 1), entryOf("operator", "", 2), entryOf("operator", "status", 2)))).To(Equal([]string{"operator"}), "a new entry")
	g.Expect(Writers(before, writtenBy(entryOf("creator", "", 1)))).To(BeEmpty(), "an entry that is gone")
}
