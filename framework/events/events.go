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

// Await waits for an Event about an object, with this reason, and returns the messages of those found. Where parts of it are named
// ("spec.containers{main}"), there must be one about each.
func Await(ctx context.Context, c *framework.Cluster, about *framework.Object, reason string, parts ...string) (messages []string) {
	ginkgo.GinkgoHelper()
	return await(ctx, c, about, "involvedObject.uid="+string(about.GetUID()), reason, parts)
}

// AwaitByName waits for an Event with this reason about the kind and the name of an object, of a component that knows no more.
func AwaitByName(ctx context.Context, c *framework.Cluster, about *framework.Object, reason string) {
	ginkgo.GinkgoHelper()
	await(ctx, c, about, fmt.Sprintf("involvedObject.apiVersion=%s,involvedObject.kind=%s,involvedObject.name=%s",
		about.GetAPIVersion(), about.GetKind(), about.GetName()), reason, nil)
}

// await is Await for the Events that a field selector selects.
func await(ctx context.Context, c *framework.Cluster, about *framework.Object, selector, reason string, parts []string) (messages []string) {
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
		events, response := c.Session().Harness.ListFields(ctx, collection, selector)
		var found []string
		messages = nil
		for _, event := range events {
			because, _, _ := unstructured.NestedString(event.Object, "reason")
			if message, _, _ := unstructured.NestedString(event.Object, "message"); because == reason {
				messages = append(messages, message)
			}
			part, _, _ := unstructured.NestedString(event.Object, "involvedObject", "fieldPath")
			found = append(found, because+" "+part)
		}
		return found, response.Err
	}
	gomega.Eventually(ctx, poll).WithTimeout(c.Session().AtLeast(eventWritten)).WithPolling(eventPolling).Should(
		framework.Awaited(c, poll, gomega.ContainElements(expected...)), fmt.Sprintf("an Event about %s", client.Title(about)))
	return messages
}
