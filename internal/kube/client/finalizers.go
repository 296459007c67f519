package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/admission"
)

// IsOfOtherManager reports whether a finalizer belongs neither to the harness nor to the garbage collector.
func IsOfOtherManager(finalizer string) bool {
	return !strings.HasPrefix(finalizer, Domain) &&
		finalizer != metav1.FinalizerOrphanDependents && finalizer != metav1.FinalizerDeleteDependents
}

// ForeignHold describes the finalizer of another controller that keeps a terminating object. It is empty for other objects, and when all
// finalizers belong to the harness or to Kubernetes.
func ForeignHold(object *Object, finalizers []string) string {
	foreign := slices.IndexFunc(finalizers, func(finalizer string) bool {
		return IsOfOtherManager(finalizer) && !admission.IsBuiltIn(finalizer)
	})
	if foreign < 0 || object.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("%s is held by finalizer %q of another controller", Title(object), finalizers[foreign])
}

// Unreleased describes a hold that lasted longer than the limit.
func Unreleased(hold string, limit time.Duration) string {
	return fmt.Sprintf("%s and did not remove within %s", hold, limit)
}
