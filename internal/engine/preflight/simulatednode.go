package preflight

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/fixtures"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// Some behaviors need Nodes without a machine. The node controller of a cloud deletes Nodes that the cloud does not know, and each Node
// makes a cloud's service controller update every load balancer. So setup creates one, with a pod on it, and checks whether both remain.

// nodePatience is how long a Node must remain. A cloud's node controller checks every 5 s (--node-monitor-period).
const nodePatience = 6 * time.Second

// machineless are the schemes of provider ids that no cloud uses.
var machineless = []string{"kind", "k3s", "kwok", "kubemark", "k0s-cloud-provider", "fake", "mock"}

// cloudOf returns the cloud of a node by its provider id (aws:///eu-west-1a/i-0123); empty for other nodes.
func cloudOf(node *client.Object) string {
	id, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
	scheme, _, named := strings.Cut(id, "://")
	switch {
	case id == "", slices.Contains(machineless, scheme):
		return ""
	case !named:
		return "provider id " + id
	}
	return scheme
}

// probeSimulatedNode checks whether specs may create Nodes without a machine, and whether these remain. A cluster that was created for the
// run has no controllers of others.
func probeSimulatedNode(ctx context.Context, t Target) ([]v1alpha1.Finding, error) {
	if err := cmp.Or(t.served(corev1.SchemeGroupVersion.WithKind(client.Nodes.Kind)), mayCreate("nodes", "")(ctx, t)); err != nil {
		return nil, err
	}
	first, _, response := t.Client.Page(ctx, client.Nodes, url.Values{"limit": {maxParallelNodes}})
	switch {
	case apierrors.IsNotFound(response.Err):
		return nil, errNoNodes
	case response.Err != nil && !apierrors.IsForbidden(response.Err):
		return nil, fmt.Errorf("list nodes: %w", response.Err)
	}
	for _, node := range first {
		if cloud := cloudOf(node); cloud != "" && !t.Disruptive {
			return nil, skipReason{
				nodesCheck, fmt.Sprintf("node %q is a machine of a cloud (%s): Nodes that the cloud does not know disturb its controllers",
					node.GetName(), cloud), "--disruptive",
			}
		}
	}
	if t.createdForRun() || !t.requires(v1alpha1.SimulatedNode) {
		return nil, nil
	}
	return watchSimulatedNode(ctx, t)
}

// watchSimulatedNode creates a Node and a pod on it, and waits whether they remain.
func watchSimulatedNode(ctx context.Context, t Target) ([]v1alpha1.Finding, error) {
	node := fixtures.Node("preflight-" + t.Run)
	node.SetLabels(t.Labels())
	created := t.Client.Create(ctx, node)
	switch {
	case apierrors.IsForbidden(created.Err), apierrors.IsInvalid(created.Err):
		return nil, skipReason{nodesCheck, fmt.Sprintf("no Node can be created: %s", created.Message()), "--label, --annotation"}
	case created.Err != nil:
		return nil, fmt.Errorf("create Node %q, to check whether it remains: %w", node.GetName(), created.Err)
	}
	pod := fixtures.GhostBoundPod("preflight")
	pod.SetNamespace(t.Namespace)
	pod.SetLabels(t.Labels())
	_ = unstructured.SetNestedField(pod.Object, node.GetName(), "spec", "nodeName") // whose spec is an object
	placed := t.Client.Create(ctx, pod)
	return watchRetention(ctx, t, created.Object, placed.Object)
}

// watchRetention waits until the Node is deleted, or until it and the pod have existed for long enough, and removes both. A pod is deleted
// with its Node.
func watchRetention(ctx context.Context, t Target, node, pod *client.Object) ([]v1alpha1.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Slowed(nodePatience))
	defer cancel()
	after := context.WithoutCancel(ctx)
	defer t.Client.Remove(after, node, client.Removal{})
	var evicted *client.Object
	var watching sync.WaitGroup
	if pod != nil {
		defer t.Client.Remove(after, pod, client.Removal{}) // before the Node
		watching.Go(func() { evicted = untilDeleted(ctx, t.Client, pod) })
	}
	lost := untilDeleted(ctx, t.Client, node)
	if lost != nil {
		cancel()
	}
	watching.Wait()
	switch {
	case lost != nil:
		return nil, skipReason{check: nodesCheck, text: "Nodes without a machine are deleted by " + deleterOf(after, t.Client, lost)}
	case evicted != nil:
		return []v1alpha1.Finding{{
			Check: nodesCheck, Severity: v1alpha1.Notice, Cause: "pods without a controller are deleted by " + deleterOf(after, t.Client, evicted),
			Effect: "a behavior that fails because its pods were evicted is skipped",
		}}, nil
	}
	return []v1alpha1.Finding{{
		Check: nodesCheck, Severity: v1alpha1.OK, Cause: "Nodes without a machine and pods without a controller remain",
	}}, nil
}

// untilDeleted waits until an object is deleted, and returns its last state; nil when it remains.
func untilDeleted(ctx context.Context, with *client.Client, object *client.Object) *client.Object {
	collection, err := with.CollectionOf(object)
	if err != nil {
		return nil
	}
	events, response := with.Watch(ctx, collection, metav1.ListOptions{
		FieldSelector: "metadata.name=" + object.GetName(), ResourceVersion: object.GetResourceVersion(),
	})
	if response.Err != nil {
		events = watch.NewEmptyWatch()
		<-ctx.Done()
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*client.Object)
		if ok && seen.GetUID() == object.GetUID() && (event.Type == watch.Deleted || seen.GetDeletionTimestamp() != nil) {
			return seen
		}
	}
	now := with.Get(context.WithoutCancel(ctx), object)
	if apierrors.IsNotFound(now.Err) || now.Err == nil && (now.Object.GetUID() != object.GetUID() || now.Object.GetDeletionTimestamp() != nil) {
		return object
	}
	return nil
}

// eventPatience limits the wait for an Event that names what deleted an object.
const eventPatience = time.Second

// deleterOf describes what has deleted an object, from its conditions, Events and field managers.
func deleterOf(ctx context.Context, with *client.Client, object *client.Object) string {
	if evicted := meta.FindStatusCondition(describe.Conditions(object), string(corev1.DisruptionTarget)); evicted != nil {
		return fmt.Sprintf("a client with the reason %s (%s)", evicted.Reason, evicted.Message)
	}
	described := ""
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, eventPatience, true, func(ctx context.Context) (bool, error) {
		described = lastEvent(ctx, with, object)
		return described != "", nil
	})
	if described != "" {
		return described
	}
	for _, manager := range slices.Backward(object.GetManagedFields()) {
		if manager.Manager != client.Domain {
			return fmt.Sprintf("an unknown client, after a write of field manager %q", manager.Manager)
		}
	}
	return "an unknown client"
}

// lastEvent quotes the last Event about an object; empty without one.
func lastEvent(ctx context.Context, with *client.Client, object *client.Object) string {
	events := client.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "Event", Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault),
	}
	about, response := with.ListFields(ctx, events, fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", object.GetKind(), object.GetName()))
	if response.Err != nil || len(about) == 0 {
		return ""
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(about[len(about)-1].Object, path...)
		return value
	}
	return fmt.Sprintf("%s (%s: %s)", cmp.Or(text("reportingComponent"), text("source", "component"), "an unknown client"), text("reason"), text("message"))
}
