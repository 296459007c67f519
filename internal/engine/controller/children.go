package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/journal"
)

// builtIn is the field manager of the built-in controllers.
const builtIn = "kube-controller-manager"

// records are resources whose objects describe other objects, on their own schedule.
var records = []schema.GroupResource{
	corev1.Resource("events"), {Group: eventsv1.GroupName, Resource: "events"},
}

// WatchChildren watches what a controller may create in a namespace: all objects of every watchable kind, regardless of labels. Kinds that the
// credentials may not watch are left out. The response is that of a request that failed, if any.
func WatchChildren(ctx context.Context, with *client.Client, watches *journal.Watches, namespace string) client.Response {
	collections, err := with.Removable(namespace)
	if err != nil {
		return client.Response{Request: "discover the resources of a namespace", Err: err}
	}
	for _, collection := range collections {
		if slices.Contains(records, collection.Resource.GroupResource()) {
			continue
		}
		if response := watches.Cover(ctx, collection); response.Err != nil && !isUnwatchable(response.Err) {
			return response
		}
	}
	return client.Response{}
}

// isUnwatchable reports whether a kind cannot be watched: a permission is missing, or it is not served, such as an aggregated API whose
// server is down.
func isUnwatchable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsServiceUnavailable(err)
}

// IsChild reports whether an object names another one in its owner references, or without any in its name, labels or annotations. What built-in controllers
// have created without an owner is no child.
func IsChild(made, object *client.Object) bool {
	if made.GetUID() == object.GetUID() {
		return false
	}
	owners := made.GetOwnerReferences()
	if len(owners) > 0 {
		return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return refersTo(owner, object) })
	}
	return mentions(made, object.GetName()) && !slices.ContainsFunc(made.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == builtIn
	})
}

// refersTo reports whether an owner reference refers to an object, correctly or not.
func refersTo(reference metav1.OwnerReference, object *client.Object) bool {
	return reference.UID == object.GetUID() || reference.Name == object.GetName()
}

// mentions reports whether an object's name, labels or annotations contain a name.
func mentions(object *client.Object, name string) bool {
	if strings.Contains(object.GetName(), name) {
		return true
	}
	for _, texts := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, text := range texts {
			if strings.Contains(text, name) {
				return true
			}
		}
	}
	return false
}
