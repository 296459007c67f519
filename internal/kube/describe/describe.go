// Package describe describes objects with respect to deletion, for matchers and reports, and explains why an object still exists.
package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// Object describes the deletion state of an object in one line.
func Object(object *unstructured.Unstructured) string {
	parts := []string{client.Title(object)}
	if at := object.GetDeletionTimestamp(); at != nil {
		parts = append(parts, "deletionTimestamp "+at.UTC().Format(time.TimeOnly))
	}
	if grace := object.GetDeletionGracePeriodSeconds(); grace != nil {
		parts = append(parts, fmt.Sprintf("grace %ds", *grace))
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		parts = append(parts, "finalizers "+strings.Join(finalizers, ", "))
	}
	for _, owner := range object.GetOwnerReferences() {
		parts = append(parts, "owned by "+ownerReference(owner))
	}
	if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != "" {
		parts = append(parts, "phase "+phase)
	}
	parts = append(parts, ContainerStates(object)...)
	parts = append(parts, endpointStates(object)...)
	return strings.Join(parts, "; ")
}

func ownerReference(owner metav1.OwnerReference) string {
	blocking := ""
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		blocking = " (blocking)"
	}
	return fmt.Sprintf("%s %q%s", owner.Kind, owner.Name, blocking)
}

// Pod converts an object to a pod. An object that does not fit becomes an empty one.
func Pod(object *unstructured.Unstructured) corev1.Pod {
	pod := corev1.Pod{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod)
	return pod
}

// Containers returns the states of a pod's containers, including sidecars.
func Containers(object *unstructured.Unstructured) []corev1.ContainerStatus {
	pod := Pod(object)
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
}

// ContainerStates describes each container of a pod in a few words; nil for other objects.
func ContainerStates(object *unstructured.Unstructured) []string {
	if object.GetKind() != "Pod" {
		return nil
	}
	var states []string
	for _, container := range Containers(object) {
		state := "waiting"
		switch {
		case container.State.Terminated != nil:
			state = fmt.Sprintf("terminated (exit %d)", container.State.Terminated.ExitCode)
		case container.State.Running != nil:
			state = "running"
		}
		states = append(states, container.Name+": "+state)
	}
	return states
}

// Endpoints returns the endpoints of an EndpointSlice; nil for other objects.
func Endpoints(object *unstructured.Unstructured) []discoveryv1.Endpoint {
	slice := discoveryv1.EndpointSlice{}
	if object.GetKind() != "EndpointSlice" || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice) != nil {
		return nil
	}
	return slice.Endpoints
}

// endpointStates describes each endpoint of an EndpointSlice in a few words; nil for other objects.
func endpointStates(object *unstructured.Unstructured) []string {
	var states []string
	for _, endpoint := range Endpoints(object) {
		name := "endpoint"
		if endpoint.TargetRef != nil {
			name += fmt.Sprintf(" %s %q", endpoint.TargetRef.Kind, endpoint.TargetRef.Name)
		}
		states = append(states, fmt.Sprintf("%s: ready %t, serving %t, terminating %t", name,
			ptr.Deref(endpoint.Conditions.Ready, false), ptr.Deref(endpoint.Conditions.Serving, false), ptr.Deref(endpoint.Conditions.Terminating, false)))
	}
	return states
}

// Conditions returns the conditions in an object's status.
func Conditions(object *unstructured.Unstructured) []metav1.Condition {
	content := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	// An object that does not fit has no conditions.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &content)
	return content.Status.Conditions
}
