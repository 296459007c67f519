package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// syncPolling is the interval for comparing lists with watches.
const syncPolling = 50 * time.Millisecond

// syncWatches waits until the watches have delivered everything that happened to the spec's objects, that is until they agree with lists. A
// watch that was interrupted resumes, but later, so a missing event does not prove that nothing happened.
func (c *Cluster) syncWatches(ctx context.Context) {
	ginkgo.GinkgoHelper()
	var behind string
	synced := gomega.NewGomega(func(string, ...int) {
		c.Errored(behind)
	})
	for _, collection := range c.used {
		synced.Eventually(ctx, func() bool {
			behind = c.watchLag(ctx, collection)
			return behind == ""
		}).WithTimeout(c.session.Timeout()).WithPolling(syncPolling).Should(gomega.BeTrue())
	}
}

// watchLag describes the difference between the watch of a collection and a list; empty when there is none.
func (c *Cluster) watchLag(ctx context.Context, collection client.Collection) string {
	ginkgo.GinkgoHelper()
	if !c.session.Watches.Covers(collection) {
		return ""
	}
	objects, response := c.session.Harness.List(ctx, collection, c.selector())
	if response.Err != nil {
		c.giveUp(ctx, response)
		return ""
	}
	seen, err := c.lastSeen(collection)
	if err != nil {
		return err.Error()
	}
	for _, object := range objects {
		if seen[object.GetUID()] != object.GetResourceVersion() {
			return fmt.Sprintf("the watch on %s was interrupted and has not delivered the last state of %s", collection.Resource.Resource, client.Title(object))
		}
		delete(seen, object.GetUID())
	}
	if len(seen) > 0 {
		return fmt.Sprintf("the watch on %s was interrupted and has not delivered the deletion of %d objects", collection.Resource.Resource, len(seen))
	}
	return ""
}

// lastSeen returns the last observed resourceVersions of the spec's objects in a collection, by uid, except those of deleted objects.
func (c *Cluster) lastSeen(collection client.Collection) (map[types.UID]string, error) {
	events, err := c.session.Watches.Journal.Read(func(event journal.Event) bool {
		kind := event.Object.GroupVersionKind()
		return kind.Kind == collection.Kind && kind.Group == collection.Resource.Group && kind.Version == collection.Resource.Version &&
			event.Object.GetNamespace() == collection.Namespace
	})
	seen := map[types.UID]string{}
	for _, event := range events {
		uid := event.Object.GetUID()
		if event.Type == watch.Deleted || event.Object.GetLabels()[client.SpecLabel] != c.id {
			delete(seen, uid)
			continue
		}
		seen[uid] = event.Object.GetResourceVersion()
	}
	return seen, err
}
