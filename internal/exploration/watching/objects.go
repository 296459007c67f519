package watching

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/model"
	"github.com/deletion-conformance/deletion-conformance/model/history"
)

const (
	// StateLabel and ValueAnnotation are the label and the annotation that the model knows.
	StateLabel      = client.Domain + "/state"
	ValueAnnotation = client.Domain + "/value"
	// Prefix is what the names of finalizers begin with that the model calls by the rest.
	Prefix = client.Domain + "/"
)

// Snapshot is what the model knows of an object.
func Snapshot(object *client.Object) model.Object {
	known := model.Object{
		UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion(),
		Terminating: object.GetDeletionTimestamp() != nil,
		Label:       object.GetLabels()[StateLabel],
		Value:       object.GetAnnotations()[ValueAnnotation],
	}
	var finalizers, owners []string
	for _, finalizer := range object.GetFinalizers() {
		finalizers = append(finalizers, strings.TrimPrefix(finalizer, Prefix))
	}
	for _, owner := range object.GetOwnerReferences() {
		owners = append(owners, model.Owner{
			Name: owner.Name, UID: string(owner.UID), Blocks: owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion,
		}.String())
	}
	known.Finalizers, known.Owners = model.NamesOf(finalizers...), model.NamesOf(owners...)
	return known
}

// podOf is what matters for the graceful deletion of an object; nil if it is no pod.
func podOf(object *client.Object) *history.Pod {
	if object.GetKind() != "Pod" {
		return nil
	}
	pod := describe.Pod(object)
	known := &history.Pod{Scheduled: pod.Spec.NodeName != "", Grace: pod.DeletionGracePeriodSeconds}
	known.Running = slices.ContainsFunc(describe.Containers(object), func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
	if termination := pod.Spec.TerminationGracePeriodSeconds; termination != nil {
		known.Termination = *termination
	}
	if pod.DeletionTimestamp != nil {
		known.Deadline = &pod.DeletionTimestamp.Time
	}
	return known
}

// isHeld reports whether the namespace controller has found finalizers in a namespace that is terminating.
func isHeld(object *client.Object) bool {
	return meta.IsStatusConditionTrue(describe.Conditions(object), string(corev1.NamespaceFinalizersRemaining))
}
