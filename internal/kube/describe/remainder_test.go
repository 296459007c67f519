package describe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRemainder_Finalizers(t *testing.T) {
	object := &unstructured.Unstructured{}
	g := NewWithT(t)
	g.Expect(object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n",
		"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["cloud.example.com/free","example.com/other"],"managedFields":[{
			"manager":"cloud","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",
			"fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"cloud.example.com/free\"":{}}}}}]}}`))).To(Succeed())

	g.Expect(Remainder(object, time.Date(2026, 1, 1, 0, 1, 30, 0, time.UTC))).To(Equal(
		"ConfigMap n/c, terminating for 1m30s, waits for finalizer cloud.example.com/free (set by field manager cloud)" +
			" and finalizer example.com/other (set by no field manager, as by admission)"))

	object.SetDeletionTimestamp(nil)
	object.SetFinalizers(nil)
	object.SetNamespace("")
	g.Expect(Remainder(object, time.Now())).To(HavePrefix("ConfigMap c, not terminating, "))
}

func TestRemainder_Definition(t *testing.T) {
	object := &unstructured.Unstructured{}
	g := NewWithT(t)
	g.Expect(object.UnmarshalJSON([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"c",
		"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["customresourcecleanup.apiextensions.k8s.io"]},"status":{"conditions":[
			{"type":"Terminating","status":"True","reason":"InstanceDeletionCheck","message":"1 object remains"}]}}`))).To(Succeed())

	g.Expect(Remainder(object, time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC))).To(Equal("CustomResourceDefinition c, terminating for 5s, " +
		"waits for finalizer customresourcecleanup.apiextensions.k8s.io (InstanceDeletionCheck: 1 object remains)"))
}
