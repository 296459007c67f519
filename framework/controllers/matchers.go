package controllers

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/deletion-conformance/deletion-conformance/framework"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

// MustHaveComparableVersions skips the spec when the order of events of two kinds is not certain. Kubernetes promises an order of
// resourceVersions only within a kind. If both kinds are in one store they share a counter: a write to the object then lies between the
// resourceVersions of the other kind's collection before and after it.
func MustHaveComparableVersions(ctx context.Context, c *framework.Cluster, object, other *framework.Object) {
	ginkgo.GinkgoHelper()
	collection, err := c.Session().Harness.CollectionOf(other)
	if err != nil {
		c.Check(ctx, framework.Response{Request: "use " + other.GetKind(), Err: err})
	}
	now := func() string {
		version, response := c.Session().Harness.ResourceVersion(ctx, collection, "")
		framework.Require(c.Check(ctx, response))
		return version
	}
	before := now()
	written := Touch(ctx, c, object)
	after := now()
	if !isLater(written.GetResourceVersion(), before) || isLater(written.GetResourceVersion(), after) {
		ginkgo.Skip(fmt.Sprintf("%s and %s are in different stores, so their events cannot be ordered", object.GetKind(), other.GetKind()))
	}
}

// isLater reports whether a resourceVersion is later than another; false when they cannot be compared.
func isLater(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order > 0
}

// BeWrittenAfter matches an object whose state was written later than the given state of another object. Between two kinds that requires
// MustHaveComparableVersions.
func BeWrittenAfter(earlier *framework.Object) types.GomegaMatcher {
	version := func(object *framework.Object) string { return "resourceVersion " + object.GetResourceVersion() }
	return framework.Property(fmt.Sprintf("be written after %s had %s", client.Title(earlier), version(earlier)), func(object *framework.Object) bool {
		return isLater(object.GetResourceVersion(), earlier.GetResourceVersion())
	}, version)
}

// BeCollectableWith matches an object with an owner reference that the garbage collector can resolve: group, kind, name and uid are the
// owner's, and the owner is in the same namespace or cluster-scoped.
func BeCollectableWith(c *framework.Cluster, owner *framework.Object) types.GomegaMatcher {
	return framework.Property("have an owner reference that the garbage collector can resolve to "+client.Title(owner)+", "+string(owner.GetUID()), func(object *framework.Object) bool {
		sameNamespace := owner.GetNamespace() == "" || owner.GetNamespace() == object.GetNamespace()
		return sameNamespace && slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID() && reference.Name == owner.GetName() && isServedAs(c, reference, owner)
		})
	}, func(object *framework.Object) string {
		return fmt.Sprintf("owner references %v", object.GetOwnerReferences())
	})
}

// isServedAs reports whether a reference names the owner's kind, in a version that the server serves.
func isServedAs(c *framework.Cluster, reference metav1.OwnerReference, owner *framework.Object) bool {
	named := &framework.Object{}
	named.SetGroupVersionKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
	_, err := c.Session().Harness.Mapping(named)
	return err == nil && named.GroupVersionKind().GroupKind() == owner.GroupVersionKind().GroupKind()
}
