package environment

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// OrphansByDefault says whether a delete that names no policy orphans the dependents of an object of this kind, as it does those of
// Jobs and ReplicationControllers. What cannot be tried does not.
func (e *Environment) OrphansByDefault(ctx context.Context, like *client.Object) bool {
	if e.CreatesNothing() {
		return false
	}
	id := "probe-" + rand.String(6)
	mine := labels.Merge(e.labels(1), labels.Set{client.SpecLabel: id})
	probe := like.DeepCopy()
	probe.SetName(e.options.Run + "-" + id)
	probe.SetNamespace(e.Session(1).Namespace)
	probe.SetLabels(labels.Merge(probe.GetLabels(), mine))
	probe.SetFinalizers([]string{client.Hold})
	collection, err := e.client.CollectionOf(probe)
	if err != nil {
		return false
	}
	probe.SetNamespace(collection.Namespace)
	if created := e.client.Create(ctx, probe); created.Err != nil {
		return false
	}
	defer e.client.Clear(context.WithoutCancel(ctx), collection, mine.String())
	deleted := e.client.Delete(ctx, probe, metav1.DeleteOptions{})
	return deleted.Object != nil && slices.Contains(deleted.Object.GetFinalizers(), metav1.FinalizerOrphanDependents)
}
