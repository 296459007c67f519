// Package events waits for Events that components report about objects.
package events

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// eventPolling is how often the Events about an object are listed. They carry no labels of the run, so its watches do
// not see them.
const eventPolling = 100 * time.Millisecond

// Await waits for an Event about an object, with this reason.
func Await(ctx context.Context, c *framework.Cluster, about *framework.Object, reason string) {
	ginkgo.GinkgoHelper()
	events := &framework.Object{}
	events.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	// The Events about what is in no namespace are in that one.
	events.SetNamespace(cmp.Or(about.GetNamespace(), metav1.NamespaceDefault))
	collection := c.CollectionOf(ctx, events)
	gomega.Eventually(ctx, func() ([]string, error) {
		events, response := c.Session().Harness.ListFields(ctx, collection, "involvedObject.uid="+string(about.GetUID()))
		var reasons []string
		for _, event := range events {
			reason, _, _ := unstructured.NestedString(event.Object, "reason")
			reasons = append(reasons, reason)
		}
		return reasons, response.Err
	}).WithPolling(eventPolling).Should(gomega.ContainElement(reason), fmt.Sprintf("an Event about %s", client.Title(about)))
}
