package environment

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
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Some behaviors need Nodes without a machine. The node controller of a cloud deletes Nodes that the cloud does not know, and each Node
// makes a cloud's service controller update every load balancer. So setup creates one, with a pod on it, and checks whether both remain.

// nodeProbe checks whether a Node without a machine, and a pod on it, remain.
type nodeProbe struct {
	// done is closed when that is known.
	done chan struct{}
	// lost is why such Nodes are deleted, and evicted who deletes pods; both are empty when nothing was deleted.
	lost, evicted string
}

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

// probeSimulatedNode checks whether specs may create Nodes without a machine. Whether these remain is known later; see AwaitSimulatedNode.
func (e *Environment) probeSimulatedNode(ctx context.Context) error {
	if err := cmp.Or(e.served(corev1.SchemeGroupVersion.WithKind(nodes.Kind)), e.probePermission("nodes", "")(ctx)); err != nil {
		return err
	}
	first, _, response := e.client.Page(ctx, nodes, url.Values{"limit": {nodesAtOnce}})
	switch {
	case apierrors.IsNotFound(response.Err):
		return errNoNodes
	case response.Err != nil && !apierrors.IsForbidden(response.Err):
		return fmt.Errorf("list nodes: %w", response.Err)
	}
	for _, node := range first {
		if cloud := cloudOf(node); cloud != "" && !e.options.Disruptive {
			return missingFeature{
				nodesCheck, fmt.Sprintf("node %q is a machine of a cloud (%s): Nodes that the cloud does not know disturb its controllers",
					node.GetName(), cloud), "--disruptive",
			}
		}
	}
	if e.wants(v1alpha1.SimulatedNode) {
		return e.tryNode(ctx)
	}
	return nil
}

// wants reports whether one of the run's behaviors requires a feature, so that no unnecessary probe creates objects.
func (e *Environment) wants(need v1alpha1.Feature) bool { return len(e.behaviorIDs(&need)) > 0 }

// tryNode creates a Node and a pod on it, and starts to check whether they remain.
func (e *Environment) tryNode(ctx context.Context) error {
	node := fixtures.Node("preflight-" + e.options.Run)
	node.SetLabels(e.labels(1))
	created := e.client.Create(ctx, node)
	switch {
	case apierrors.IsForbidden(created.Err), apierrors.IsInvalid(created.Err):
		return missingFeature{nodesCheck, fmt.Sprintf("no Node can be created: %s", created.Message()), "--label, --annotation"}
	case created.Err != nil:
		return fmt.Errorf("create Node %q, to check whether it remains: %w", node.GetName(), created.Err)
	}
	pod := fixtures.GhostBoundPod("preflight")
	pod.SetNamespace(e.namespaceOf(1))
	pod.SetLabels(e.labels(1))
	_ = unstructured.SetNestedField(pod.Object, node.GetName(), "spec", "nodeName") // whose spec is an object
	placed := e.client.Create(ctx, pod)
	e.nodeProbe = &nodeProbe{done: make(chan struct{})}
	go func() {
		defer close(e.nodeProbe.done)
		if err := crash.Caught("check whether a Node remains", func() error { e.seeWhetherStay(ctx, created.Object, placed.Object); return nil }); err != nil {
			e.nodeProbe.lost = err.Error()
		}
	}()
	return nil
}

// seeWhetherStay waits until the Node is deleted, or until it and the pod have existed for long enough, and removes both. A pod is deleted
// with its Node.
func (e *Environment) seeWhetherStay(ctx context.Context, node, pod *client.Object) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Slowed(nodePatience))
	defer cancel()
	var evicted *client.Object
	var watching sync.WaitGroup
	if pod != nil {
		watching.Go(func() { evicted = e.untilDeleted(ctx, pod) })
	}
	lost := e.untilDeleted(ctx, node)
	if lost != nil {
		cancel()
	}
	watching.Wait()
	after := context.WithoutCancel(ctx)
	switch {
	case lost != nil:
		e.nodeProbe.lost = "Nodes without a machine are deleted by " + e.whoDeleted(after, lost)
	case evicted == nil:
		e.found.add(v1alpha1.Finding{Check: nodesCheck, Severity: v1alpha1.OK, Cause: "Nodes without a machine and pods without a controller remain"})
	default:
		e.nodeProbe.evicted = e.whoDeleted(after, evicted)
		e.found.add(v1alpha1.Finding{
			Check: nodesCheck, Severity: v1alpha1.Notice, Cause: "pods without a controller are deleted by " + e.nodeProbe.evicted,
			Effect: "a behavior that fails because its pods were evicted is skipped",
		})
	}
	if pod != nil {
		e.client.Remove(after, pod, client.Removal{})
	}
	e.client.Remove(after, node, client.Removal{})
}

// untilDeleted waits until an object is deleted, and returns its last state; nil when it remains.
func (e *Environment) untilDeleted(ctx context.Context, object *client.Object) *client.Object {
	collection, err := e.client.CollectionOf(object)
	if err != nil {
		return nil
	}
	events, response := e.client.Watch(ctx, collection, metav1.ListOptions{
		FieldSelector: "metadata.name=" + object.GetName(), ResourceVersion: object.GetResourceVersion(),
	})
	if response.Err != nil {
		<-ctx.Done()
		return e.deletedSince(ctx, object)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*client.Object)
		if ok && seen.GetUID() == object.GetUID() && (event.Type == watch.Deleted || seen.GetDeletionTimestamp() != nil) {
			return seen
		}
	}
	return e.deletedSince(ctx, object)
}

// deletedSince returns the last known state of a deleted object; nil for one that exists.
func (e *Environment) deletedSince(ctx context.Context, object *client.Object) *client.Object {
	now := e.client.Get(context.WithoutCancel(ctx), object)
	if apierrors.IsNotFound(now.Err) || now.Err == nil && (now.Object.GetUID() != object.GetUID() || now.Object.GetDeletionTimestamp() != nil) {
		return object
	}
	return nil
}

// eventPatience limits the wait for an Event that names who deleted an object.
const eventPatience = time.Second

// whoDeleted describes who has deleted an object, from its conditions, Events and field managers.
func (e *Environment) whoDeleted(ctx context.Context, object *client.Object) string {
	if evicted := meta.FindStatusCondition(describe.Conditions(object), string(corev1.DisruptionTarget)); evicted != nil {
		return fmt.Sprintf("a client with the reason %s (%s)", evicted.Reason, evicted.Message)
	}
	said := ""
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, eventPatience, true, func(ctx context.Context) (bool, error) {
		said = e.lastEvent(ctx, object)
		return said != "", nil
	})
	if said != "" {
		return said
	}
	for _, manager := range slices.Backward(object.GetManagedFields()) {
		if manager.Manager != client.Domain {
			return fmt.Sprintf("an unknown client, after a write of field manager %q", manager.Manager)
		}
	}
	return "an unknown client"
}

// lastEvent quotes the last Event about an object; empty without one.
func (e *Environment) lastEvent(ctx context.Context, object *client.Object) string {
	events := client.Collection{
		Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "Event", Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault),
	}
	about, response := e.client.ListFields(ctx, events, fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", object.GetKind(), object.GetName()))
	if response.Err != nil || len(about) == 0 {
		return ""
	}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(about[len(about)-1].Object, path...)
		return value
	}
	return fmt.Sprintf("%s (%s: %s)", cmp.Or(text("reportingComponent"), text("source", "component"), "an unknown client"), text("reason"), text("message"))
}

// AwaitSimulatedNode waits until it is known whether Nodes without a machine remain. It returns at once without a probe.
func (e *Environment) AwaitSimulatedNode() {
	if e.nodeProbe != nil {
		<-e.nodeProbe.done
	}
}

// lostNodes describes who deletes Nodes without a machine, as far as that is known; empty when nothing does.
func (e *Environment) lostNodes() string {
	if e.nodeProbe == nil {
		return ""
	}
	select {
	case <-e.nodeProbe.done:
		return e.nodeProbe.lost
	default:
		return ""
	}
}
