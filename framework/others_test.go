package framework

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// written is an object of a resource that a run judges, after some have written it.
func written(version string, change func(*Object), managers ...metav1.ManagedFieldsEntry) *Object {
	object := &Object{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(3)},
		"metadata": map[string]any{"name": "one", "uid": "u", "resourceVersion": version, "finalizers": []any{Hold}},
	}}
	object.SetAnnotations(map[string]string{client.ResourceAnnotation: "judged"})
	object.SetOwnerReferences([]metav1.OwnerReference{{UID: "a"}, {UID: "b"}})
	change(object)
	object.SetManagedFields(managers)
	return object
}

// managed is what somebody manages.
func managed(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWhatOthersWroteIsToldFromWhatTheServerDid(t *testing.T) {
	program, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	ours := managed(program, `{"f:metadata":{"f:finalizers":{".":{},"v:\"`+Hold+`\"":{}}},"f:spec":{"f:size":{}}}`)
	nothing := func(*Object) {}
	earlier := written("1", nothing, ours)
	for _, test := range []struct {
		name string
		now  *Object
		want bool
	}{
		{"nobody's name stands for it", written("2", nothing, ours), false},
		{"a status", written("2", func(o *Object) { o.Object["status"] = map[string]any{"phase": "Ready"} },
			ours, managed("widget-controller", `{"f:status":{"f:phase":{}}}`)), true},
		{"a finalizer", written("2", func(o *Object) { o.SetFinalizers([]string{Hold, "example.com/widget"}) },
			ours, managed("widget-controller", `{"f:metadata":{"f:finalizers":{"v:\"example.com/widget\"":{}}}}`)), true},
		{"an annotation and a field", written("2", func(o *Object) {
			o.SetAnnotations(map[string]string{client.ResourceAnnotation: "judged", "example.com/rack": "7"})
			o.Object["spec"].(map[string]any)["colour"] = "red"
		}, ours, managed("widget-controller", `{"f:metadata":{"f:annotations":{"f:example.com/rack":{}}},"f:spec":{"f:colour":{}}}`)), true},
		{"a status, and a deletion", written("2", func(o *Object) { o.SetDeletionTimestamp(new(metav1.Now())) },
			ours, managed("widget-controller", `{"f:status":{"f:phase":{}}}`)), false},
		{"a status, and a finalizer that is gone", written("2", func(o *Object) { o.SetFinalizers(nil) },
			ours, managed("widget-controller", `{"f:status":{"f:phase":{}}}`)), false},
		{"an owner reference that is gone", written("2", func(o *Object) { o.SetOwnerReferences([]metav1.OwnerReference{{UID: "b"}}) },
			ours, managed("kube-controller-manager", `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"b\"}":{}}}}`)), false},
		{"the run's own", written("2", func(o *Object) { o.Object["spec"].(map[string]any)["size"] = int64(4) },
			ours, managed(Domain+"/other", `{"f:spec":{"f:size":{}}}`)), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(onlyOthersWrote(earlier, test.now)).To(Equal(test.want))
			g.Expect(test.now).To(WithTransform(func(now *Object) bool {
				matched, err := BeUnchangedSince(earlier).Match(now)
				return matched && err == nil
			}, Equal(test.want)))
			plain := earlier.DeepCopy()
			plain.SetAnnotations(nil)
			g.Expect(onlyOthersWrote(plain, test.now)).To(BeFalse(), "what is no such resource nobody else writes")
		})
	}
}
