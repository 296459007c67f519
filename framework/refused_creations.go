package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// Admission can also refuse requests of controllers, which report that in Events and conditions of their objects.

// refusalTime limits the search for refused requests of controllers.
const refusalTime = 10 * time.Second

// refusedCreation describes what the environment's admission refused to controllers of the spec's objects; empty when there was nothing.
func (c *Cluster) refusedCreation(ctx context.Context, seen []journal.Event) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTime)
	defer cancel()
	namespaces := map[string]bool{}
	for _, event := range seen {
		namespaces[event.Object.GetNamespace()] = true
		for _, condition := range describe.Conditions(event.Object) {
			if condition.Type == replicaFailure && condition.Status == metav1.ConditionTrue {
				if refused := c.refusedTo(event.Object.GetKind(), condition.Message); refused != "" {
					return refused
				}
			}
		}
	}
	delete(namespaces, "")
	for namespace := range namespaces {
		for _, warning := range c.warnings(ctx, namespace) {
			if !strings.Contains(warning.InvolvedObject.Name, c.id) { // controllers derive the names of objects from their owners
				continue
			}
			if refused := c.refusedTo(warning.InvolvedObject.Kind, warning.Message); refused != "" {
				return refused
			}
		}
	}
	return ""
}

// replicaFailure is the condition of ReplicaSets, ReplicationControllers and Deployments whose pods cannot be created.
const replicaFailure = "ReplicaFailure"

// refusedTo describes a message about a refusal by the environment's admission; empty for other messages.
func (c *Cluster) refusedTo(kind, message string) string {
	refusal, ok := admission.Read(message)
	if !ok || c.isOwn(refusal) {
		return ""
	}
	return fmt.Sprintf("create objects for a %s: %s", kind, refusal)
}

// events is the collection of Events.
var events = client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: "Event"}

// warnings returns the warning Events of a namespace. Controllers use different reasons (FailedCreate, ReplicaSetCreateError), so the
// message decides.
func (c *Cluster) warnings(ctx context.Context, namespace string) []corev1.Event {
	collection := events
	collection.Namespace = namespace
	objects, _ := c.session.Harness.ListFields(ctx, collection, "type="+corev1.EventTypeWarning)
	var warnings []corev1.Event
	for _, object := range objects {
		var warning corev1.Event
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &warning) == nil {
			warnings = append(warnings, warning)
		}
	}
	return warnings
}
