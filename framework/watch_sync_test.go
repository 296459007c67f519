package framework

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/engine/session"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// seenAs returns an object of a spec as in an event.
func seenAs(spec, uid, version string) *Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	object.SetNamespace("n")
	object.SetUID(types.UID(uid))
	object.SetResourceVersion(version)
	object.SetLabels(map[string]string{client.SpecLabel: spec})
	return object
}

func TestLastSeen(t *testing.T) {
	g := NewWithT(t)
	watches := journal.NewWatches(nil, "")
	t.Cleanup(watches.Stop)
	cluster := &Cluster{spec: &spec{session: &session.Session{Watches: watches}, id: "mine"}}
	elsewhere, otherKind := seenAs("mine", "elsewhere", "1"), seenAs("mine", "other-kind", "1")
	elsewhere.SetNamespace("m")
	otherKind.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ConfigMap"})
	for _, event := range []journal.Event{
		{Type: watch.Added, Object: seenAs("mine", "stays", "1")},
		{Type: watch.Added, Object: seenAs("mine", "goes", "2")},
		{Type: watch.Added, Object: seenAs("another", "not-mine", "3")},
		{Type: watch.Modified, Object: seenAs("mine", "stays", "4")},
		{Type: watch.Added, Object: seenAs("mine", "left", "5")},
		{Type: watch.Deleted, Object: seenAs("mine", "goes", "6")},
		{Type: watch.Modified, Object: seenAs("another", "left", "7")}, // its label was changed, so lists of the spec do not contain it
		{Type: watch.Added, Object: elsewhere},
		{Type: watch.Added, Object: otherKind},
	} {
		watches.Journal.Add(event)
	}
	collection := client.Collection{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: "n",
	}

	g.Expect(cluster.lastSeen(collection)).To(Equal(map[types.UID]string{"stays": "4"}))

	lost := errors.New("the watch on configmaps was lost")
	watches.Journal.Fail(lost)
	_, err := cluster.lastSeen(collection)
	g.Expect(err).To(MatchError(lost))
}
