package watching

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

func TestChildren(t *testing.T) {
	g := NewWithT(t)
	watches := &journal.Watches{Journal: &journal.Journal{}}
	c, began := &Children{kind: "Widget", lasting: watches}, time.Now()
	deliver := func(kind watch.EventType, object, name, uid string, owners ...metav1.OwnerReference) {
		made := &client.Object{}
		made.SetAPIVersion("v1")
		made.SetKind(object)
		made.SetName(name)
		made.SetUID(types.UID(uid))
		made.SetOwnerReferences(owners)
		watches.Journal.Add(journal.Event{At: began.Add(time.Second), Type: kind, Object: made})
	}
	g.Expect(c.StartRound(t.Context(), began, []string{"r1-a", "r1-b"}, nil)).To(Succeed())
	deliver(watch.Added, "Widget", "r1-a", "1")
	deliver(watch.Added, "ConfigMap", "kube-root-ca.crt", "2")
	deliver(watch.Added, "Secret", "r1-a-secret", "3")
	deliver(watch.Added, "ConfigMap", "any", "4", metav1.OwnerReference{Kind: "Widget", Name: "r1-a", UID: "1"})

	g.Expect(c.Of("r1-a")).To(HaveExactElements(HaveField("GetName()", "any"), HaveField("GetName()", "r1-a-secret")))
	g.Expect(c.Of("r1-b")).To(BeEmpty())

	deliver(watch.Modified, "ConfigMap", "any", "4") // orphaned
	deliver(watch.Deleted, "Secret", "r1-a-secret", "3")
	events, err := c.Events()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events).To(HaveExactElements(
		HaveField("Name", "Secret/r1-a-secret"), HaveField("Object.Owners", BeEquivalentTo("r1-a/1")),
		And(HaveField("Name", "ConfigMap/any"), HaveField("Parent", "r1-a"), HaveField("Object.Owners", BeEmpty())),
		And(HaveField("Type", history.Deleted), HaveField("At", time.Second)),
	))
	g.Expect(c.Of("r1-a")).To(HaveLen(1))

	g.Expect(c.StartRound(t.Context(), began, []string{"r2-a"}, nil)).To(Succeed())
	g.Expect(c.Events()).To(BeEmpty())
}
