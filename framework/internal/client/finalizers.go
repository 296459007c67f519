package client

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/admission"
)

// IsOfOtherManager reports whether a finalizer is neither the harness's nor the garbage collector's.
func IsOfOtherManager(finalizer string) bool {
	return !strings.HasPrefix(finalizer, Domain) &&
		finalizer != metav1.FinalizerOrphanDependents && finalizer != metav1.FinalizerDeleteDependents
}

// ForeignHold says which of the finalizers that keep a terminating object is neither the harness's nor one of Kubernetes. It is empty
// for an object that is not terminating or has no such finalizer.
func ForeignHold(object *Object, finalizers []string) string {
	foreign := slices.IndexFunc(finalizers, func(finalizer string) bool {
		return IsOfOtherManager(finalizer) && !admission.IsBuiltIn(finalizer)
	})
	if foreign < 0 || object.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("%s is held by the finalizer %q, which another controller added", Title(object), finalizers[foreign])
}
