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
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
)

// MustOrder skips the spec where it is not certain what came first, of what happened to an object and to another of another
// kind. Kubernetes promises an order of resourceVersions within a kind only. Where both kinds are in one store, though, one
// counter runs for both: then a write to the object falls between what the other kind's collection says before it and after it.
func MustOrder(ctx context.Context, c *framework.Cluster, object, other *framework.Object) {
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
		ginkgo.Skip(fmt.Sprintf("%s and %s are not in one store, so it is not certain what came first", object.GetKind(), other.GetKind()))
	}
}

// isLater says of a resourceVersion that it is later than another; false where that cannot be told.
func isLater(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order > 0
}

// BeWrittenAfter matches an object as it was written later than another was as it is given. Of two kinds that is certain after
// MustOrder.
func BeWrittenAfter(earlier *framework.Object) types.GomegaMatcher {
	version := func(object *framework.Object) string { return "resourceVersion " + object.GetResourceVersion() }
	return framework.Property(fmt.Sprintf("be written after %s was as it is at %s", client.Title(earlier), version(earlier)), func(object *framework.Object) bool {
		return isLater(object.GetResourceVersion(), earlier.GetResourceVersion())
	}, version)
}

// BeCollectableWith matches an object with a reference to an owner of which the garbage collector can make use: group, kind,
// name and uid are the owner's, and the owner is in the same namespace, or in none.
func BeCollectableWith(c *framework.Cluster, owner *framework.Object) types.GomegaMatcher {
	return framework.Property("have an owner reference by which the garbage collector finds "+client.Title(owner)+", "+string(owner.GetUID()), func(object *framework.Object) bool {
		sameNamespace := owner.GetNamespace() == "" || owner.GetNamespace() == object.GetNamespace()
		return sameNamespace && slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID() && reference.Name == owner.GetName() && isServedAs(c, reference, owner)
		})
	}, func(object *framework.Object) string {
		return fmt.Sprintf("owner references %v", object.GetOwnerReferences())
	})
}

// isServedAs says whether a reference names the owner's kind, in a version that the server serves.
func isServedAs(c *framework.Cluster, reference metav1.OwnerReference, owner *framework.Object) bool {
	named := &framework.Object{}
	named.SetGroupVersionKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
	_, err := c.Session().Harness.Mapping(named)
	return err == nil && named.GroupVersionKind().GroupKind() == owner.GroupVersionKind().GroupKind()
}
