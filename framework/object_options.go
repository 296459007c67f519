package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// ObjectOption changes an object before it is created.
type ObjectOption func(*Object)

// Held adds the harness's finalizer: a deleted object remains, terminating, until the spec releases it.
func Held(object *Object) { WithFinalizers(Hold)(object) }

// WithFinalizers adds finalizers.
func WithFinalizers(finalizers ...string) ObjectOption {
	return func(object *Object) { object.SetFinalizers(append(object.GetFinalizers(), finalizers...)) }
}

// WithoutFinalizers removes finalizers.
func WithoutFinalizers(finalizers ...string) ObjectOption {
	return func(object *Object) {
		object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(finalizer string) bool {
			return slices.Contains(finalizers, finalizer)
		}))
	}
}

// WithGrace sets a pod's terminationGracePeriodSeconds, in seconds.
func WithGrace(seconds int64) ObjectOption {
	return func(pod *Object) {
		// This cannot fail, because the fixture's spec is an object.
		_ = unstructured.SetNestedField(pod.Object, seconds, "spec", "terminationGracePeriodSeconds")
	}
}

// UsingClaim makes a pod use a PersistentVolumeClaim, as its only volume.
func UsingClaim(claim *Object) ObjectOption {
	return WithField([]any{map[string]any{
		"name": "data", "persistentVolumeClaim": map[string]any{"claimName": claim.GetName()},
	}}, "spec", "volumes")
}

// OnNode binds a pod to a node.
func OnNode(name string) ObjectOption {
	return func(pod *Object) {
		// This cannot fail, because the fixture's spec is an object.
		_ = unstructured.SetNestedField(pod.Object, name, "spec", "nodeName")
	}
}

// WithLabel sets a label.
func WithLabel(name, value string) ObjectOption {
	return func(object *Object) {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
		object.SetLabels(labels)
	}
}

// Named creates the object under exactly this name, which another object has or had.
func Named(name string) ObjectOption { return func(object *Object) { object.SetName(name) } }

// WithMetadata sets fields of the metadata as in JSON; nil removes one. Labels and annotations are merged, because the cluster's policies
// may require the existing ones.
func WithMetadata(fields map[string]any) ObjectOption {
	return func(object *Object) {
		metadata, _ := object.Object["metadata"].(map[string]any)
		for name, value := range fields {
			added, isMap := value.(map[string]any)
			if present, has := metadata[name].(map[string]any); isMap && has {
				value = merged(present, added)
			}
			metadata[name] = value
			if value == nil {
				delete(metadata, name)
			}
		}
	}
}

// merged returns both maps in one; the second takes precedence.
func merged(present, added map[string]any) map[string]any {
	both := maps.Clone(present)
	maps.Copy(both, added)
	return both
}

// OwnedBy adds an owner reference.
func OwnedBy(owner *Object, options ...ReferenceOption) ObjectOption {
	return func(object *Object) {
		reference := ReferenceTo(owner, options...)
		object.SetOwnerReferences(append(object.GetOwnerReferences(), reference))
	}
}

// NotOwnedBy removes the reference to an owner.
func NotOwnedBy(owner *Object) ObjectOption {
	return func(object *Object) {
		object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID()
		}))
	}
}

// ReferenceOption changes an owner reference.
type ReferenceOption func(*metav1.OwnerReference)

// Blocking sets blockOwnerDeletion: a foreground deletion of the owner waits for the dependent.
func Blocking(reference *metav1.OwnerReference) { reference.BlockOwnerDeletion = new(true) }

// NonBlocking sets blockOwnerDeletion to false, which is the default.
func NonBlocking(reference *metav1.OwnerReference) { reference.BlockOwnerDeletion = new(false) }

// ReferenceTo returns an owner reference to an object that exists or existed.
func ReferenceTo(owner *Object, options ...ReferenceOption) metav1.OwnerReference {
	reference := metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(),
		Kind:       owner.GetKind(),
		Name:       owner.GetName(),
		UID:        owner.GetUID(),
	}
	for _, option := range options {
		option(&reference)
	}
	return reference
}

// WithField sets one field by its path. Values are as in JSON: map[string]any, []any, int64.
func WithField(value any, path ...string) ObjectOption {
	return func(object *Object) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			ginkgo.Fail(fmt.Sprintf("set %s of %s: %v", strings.Join(path, "."), client.Title(object), err))
		}
	}
}

// Controlling sets controller: the owner manages the dependent.
func Controlling(reference *metav1.OwnerReference) { reference.Controller = new(true) }
