package framework

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/journal"
)

func TestObservationsHoldWhatDeletionIsAbout(t *testing.T) {
	g := NewWithT(t)
	pod := stored("pod", dying, graceful(30), Held, OwnedBy(owner, Blocking))
	pod.SetKind("Pod")
	pod.SetNamespace("somewhere")
	pod.SetResourceVersion("7")
	pod.SetAnnotations(map[string]string{"secret": "of nobody's business"})
	g.Expect(unstructured.SetNestedField(pod.Object, "Running", "status", "phase")).To(Succeed())
	at := time.UnixMilli(5)

	g.Expect(observe(journal.Event{At: at, Type: watch.Modified, Object: pod})).To(Equal(v1alpha1.Observation{
		At: at, Type: "MODIFIED", ObjectReference: v1alpha1.ObjectReference{Version: "v1", Kind: "Pod", Namespace: "somewhere", Name: "pod", UID: "pod"}, ResourceVersion: "7",
		DeletionTimestamp: pod.GetDeletionTimestamp(), GraceSeconds: new(int64(30)), Finalizers: []string{Hold},
		Owners: pod.GetOwnerReferences(), Phase: "Running",
	}))
}

func TestObservationsTellCanariesFromWhatIsTested(t *testing.T) {
	canary := stored("canary", WithLabel(client.CanaryLabel, "true"))
	NewWithT(t).Expect(observe(modified(canary)).Canary).To(BeTrue())
}
