package environment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// removable returns the collections of a namespace or, if it is empty, the cluster-scoped ones, in the order in which they are cleared.
func removable(with *client.Client, namespace string) ([]client.Collection, error) {
	collections, err := with.Removable(namespace)
	slices.SortFunc(collections, inOrder)
	return collections, err
}

// inOrder orders collections: first objects that may refuse deletions (webhooks, admission policies), last those that grant permissions.
func inOrder(a, b client.Collection) int {
	rank := func(collection client.Collection) int {
		switch collection.Resource.Group {
		case admissionregistrationv1.GroupName:
			return -1
		case rbacv1.GroupName:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Resource.String(), b.Resource.String()))
}

// unserved reports whether the run cannot have created objects in a collection: it may not be listed, or does not exist.
func unserved(response client.Response) bool {
	return apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) || apierrors.IsMethodNotSupported(response.Err)
}

// Objects that a run could not remove are listed with what holds them, so that the user can act.

// maxListed limits how many remaining objects are listed.
const maxListed = 20

// listed lists remaining objects, one a line, those with finalizers first.
func listed(objects []*client.Object) string {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *client.Object) int {
		return min(len(b.GetFinalizers()), 1) - min(len(a.GetFinalizers()), 1)
	})
	var text strings.Builder
	for _, object := range objects[:min(len(objects), maxListed)] {
		text.WriteString("\n  " + describe.Remainder(object, time.Now()))
	}
	if more := len(objects) - maxListed; more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return text.String()
}
