package framework

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventPolling is how often the Events about an object are listed. They carry no labels of the run, so its watches do
// not see them.
const eventPolling = 100 * time.Millisecond

var eventsResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// AwaitEvent waits for an Event about an object, with this reason.
func (c *Cluster) AwaitEvent(ctx context.Context, about *Object, reason string) {
	ginkgo.GinkgoHelper()
	collection := collectionPath(eventsResource, about.GetNamespace())
	gomega.Eventually(ctx, func() ([]string, error) {
		events, err := c.session.watches.client.list(ctx, collection, "")
		var reasons []string
		for _, event := range events {
			uid, _, _ := unstructured.NestedString(event.Object, "involvedObject", "uid")
			if uid == string(about.GetUID()) {
				said, _, _ := unstructured.NestedString(event.Object, "reason")
				reasons = append(reasons, said)
			}
		}
		return reasons, err
	}).WithPolling(eventPolling).Should(gomega.ContainElement(reason), fmt.Sprintf("an Event about %s", title(about)))
}
