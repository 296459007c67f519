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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// eventPolling is the interval for listing the Events of an object. They do not carry the run's labels, so its watches do not select them.
const eventPolling = 100 * time.Millisecond

// eventWritten is how long a busy component may take to write an Event: it writes one after the other, and others may wait before it
// (maxQueuedEvents in client-go/tools/record).
const eventWritten = 2 * time.Minute

// Await waits for an Event about an object, with this reason. Where parts of it are named ("spec.containers{main}"), there must be
// one about each.
func Await(ctx context.Context, c *framework.Cluster, about *framework.Object, reason string, parts ...string) {
	ginkgo.GinkgoHelper()
	events := &framework.Object{}
	events.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	// Events about cluster-scoped objects are in the default namespace.
	events.SetNamespace(cmp.Or(about.GetNamespace(), metav1.NamespaceDefault))
	collection := c.CollectionOf(ctx, events)
	expected := []any{gomega.HavePrefix(reason + " ")}
	if len(parts) > 0 {
		expected = nil
	}
	for _, part := range parts {
		expected = append(expected, reason+" "+part)
	}
	poll := func() ([]string, error) {
		events, response := c.Session().Harness.ListFields(ctx, collection, "involvedObject.uid="+string(about.GetUID()))
		var found []string
		for _, event := range events {
			reason, _, _ := unstructured.NestedString(event.Object, "reason")
			part, _, _ := unstructured.NestedString(event.Object, "involvedObject", "fieldPath")
			found = append(found, reason+" "+part)
		}
		return found, response.Err
	}
	gomega.Eventually(ctx, poll).WithTimeout(c.Session().AtLeast(eventWritten)).WithPolling(eventPolling).Should(
		framework.Awaited(c, poll, gomega.ContainElements(expected...)), fmt.Sprintf("an Event about %s", client.Title(about)))
}
