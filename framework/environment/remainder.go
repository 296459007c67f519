package environment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

// What a run could not remove is listed with what holds it, so that somebody can do something about it.

// mostListed is how many objects are listed that could not be removed.
const mostListed = 20

// listed lists objects that could not be removed, one a line, the ones with finalizers first.
func listed(objects []*client.Object) string {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *client.Object) int {
		return min(len(b.GetFinalizers()), 1) - min(len(a.GetFinalizers()), 1)
	})
	var text strings.Builder
	for _, object := range objects[:min(len(objects), mostListed)] {
		text.WriteString("\n  " + describe.Remainder(object, time.Now()))
	}
	if more := len(objects) - mostListed; more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return text.String()
}

// stays is the error that a namespace is still there, and why.
func (t *teardown) stays(ctx context.Context, namespace *client.Object) error {
	read := t.with.Get(ctx, namespace)
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil
	case read.Err != nil:
		return fmt.Errorf("namespace %q may still be there: %w", namespace.GetName(), read.Err)
	}
	namespace = read.Object
	text := fmt.Sprintf("namespace %q is still there", namespace.GetName())
	if reasons := t.whyNamespaceStays(namespace); reasons != "" {
		text += ": " + reasons
	}
	content, _ := t.contentOf(ctx, namespace.GetName())
	content = slices.DeleteFunc(content, func(object *client.Object) bool { return len(object.GetFinalizers()) == 0 })
	if len(namespace.GetFinalizers()) > 0 {
		content = append([]*client.Object{namespace}, content...)
	}
	return fmt.Errorf("%s%s", text, listed(content))
}

// whyNamespaceStays is what the namespace controller says about a namespace that does not go; empty where it says nothing.
func (t *teardown) whyNamespaceStays(namespace *client.Object) string {
	var reasons []string
	for _, condition := range describe.Conditions(namespace) {
		switch {
		case condition.Status != metav1.ConditionTrue:
		case condition.Type == string(corev1.NamespaceDeletionDiscoveryFailure):
			reasons = append(reasons, undiscoverable(t.with.Undiscoverable(), condition.Message))
		default:
			reasons = append(reasons, condition.Message)
		}
	}
	return strings.Join(reasons, "; ")
}

// undiscoverable says which APIServices keep the namespace controller from deleting any namespace, and what to do.
func undiscoverable(services []string, message string) string {
	which := "an APIService"
	if len(services) > 0 {
		which = "APIService " + strings.Join(services, " and APIService ")
	}
	return fmt.Sprintf("%s is unavailable, and Kubernetes deletes no namespace while it cannot discover all APIs: "+
		"repair what serves it, or delete it if nothing does (kubectl get apiservices); the namespace controller says: %s", which, message)
}
