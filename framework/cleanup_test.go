package framework

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

func TestObserve(t *testing.T) {
	g := NewWithT(t)
	pod := stored("pod", dying, graceful(30), Held, OwnedBy(owner, Blocking))
	pod.SetKind("Pod")
	pod.SetNamespace("somewhere")
	pod.SetResourceVersion("7")
	pod.SetAnnotations(map[string]string{"secret": "of nobody's business"})
	g.Expect(unstructured.SetNestedField(pod.Object, "Running", "status", "phase")).To(Succeed())
	at := time.UnixMilli(5)

	g.Expect(observe(journal.Event{At: at, Type: watch.Modified, Object: pod}, nil)).To(Equal(v1alpha1.Observation{
		At: at, Type: "MODIFIED", ObjectReference: v1alpha1.ObjectReference{Version: "v1", Kind: "Pod", Namespace: "somewhere", Name: "pod", UID: "pod"}, ResourceVersion: "7",
		DeletionTimestamp: pod.GetDeletionTimestamp(), GraceSeconds: new(int64(30)), Finalizers: []string{Hold},
		Owners: pod.GetOwnerReferences(), Phase: "Running",
	}))
}

func TestObserve_Canary(t *testing.T) {
	canary := stored("canary", WithLabel(client.CanaryLabel, "true"))
	NewWithT(t).Expect(observe(modified(canary), nil).Canary).To(BeTrue())
}

// managedBy gives an object an entry in managedFields that sets finalizers.
func managedBy(manager string, second int64, finalizers ...string) func(*Object) {
	return func(object *Object) {
		fields := map[string]any{}
		for _, finalizer := range finalizers {
			fields[fmt.Sprintf("v:%q", finalizer)] = map[string]any{}
		}
		entry := map[string]any{
			"manager": manager, "operation": "Update", "time": time.Unix(second, 0).UTC().Format(time.RFC3339),
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:finalizers": fields}},
		}
		metadata := object.Object["metadata"].(map[string]any)
		entries, _ := metadata["managedFields"].([]any)
		metadata["managedFields"] = append(entries, entry)
	}
}

func TestObserve_Writers(t *testing.T) {
	g := NewWithT(t)
	before := stored("owner", WithFinalizers("example.com/a", "example.com/b"), managedBy("operator", 1, "example.com/a"))
	after := stored("owner", WithFinalizers("example.com/b"), managedBy("wiper", 2))
	last := stored("owner", WithFinalizers("example.com/b"), managedBy("wiper", 2))

	g.Expect(observe(modified(before), nil).Writers).To(Equal([]string{"operator"}))
	wiped := observe(modified(after), before)
	g.Expect(wiped.Writers).To(Equal([]string{"wiper"}))
	g.Expect(wiped.Released).To(Equal([]v1alpha1.Release{{Finalizer: "example.com/a", SetBy: []string{"operator"}}}))
	ended := observe(journal.Event{Type: watch.Deleted, Object: last}, after)
	g.Expect(ended.Writers).To(BeEmpty())
	g.Expect(ended.Released).To(Equal([]v1alpha1.Release{{Finalizer: "example.com/b"}}), "set by no manager")
}
