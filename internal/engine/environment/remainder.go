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

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
)

// Objects that a run could not remove are listed with what holds them, so that the user can act.

// mostListed limits how many remaining objects are listed.
const mostListed = 20

// listed lists remaining objects, one a line, those with finalizers first.
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

// stays returns the error for a namespace that still exists, with the reason.
func (t *teardown) stays(ctx context.Context, namespace *client.Object) error {
	read := t.with.Get(ctx, namespace)
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil
	case read.Err != nil:
		return fmt.Errorf("namespace %q may still exist: %w", namespace.GetName(), read.Err)
	}
	namespace = read.Object
	text := fmt.Sprintf("namespace %q still exists", namespace.GetName())
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

// whyNamespaceStays returns what the namespace controller reports about a namespace that is not deleted; empty without a report.
func (t *teardown) whyNamespaceStays(namespace *client.Object) string {
	var reasons []string
	for _, condition := range describe.Conditions(namespace) {
		switch {
		case condition.Status != metav1.ConditionTrue:
		case condition.Type == string(corev1.NamespaceDeletionDiscoveryFailure):
			reasons = append(reasons, undiscoverable(t.with.UnavailableAPIServices(), condition.Message))
		default:
			reasons = append(reasons, condition.Message)
		}
	}
	return strings.Join(reasons, "; ")
}

// undiscoverable names the APIServices that keep the namespace controller from deleting any namespace, and the remedy.
func undiscoverable(services []string, message string) string {
	which := "an APIService"
	if len(services) > 0 {
		which = "APIService " + strings.Join(services, " and APIService ")
	}
	return fmt.Sprintf("%s is unavailable, and Kubernetes deletes no namespaces until it can discover all APIs: "+
		"repair its server, or delete the APIService if it is unused (kubectl get apiservices); condition of the namespace: %s", which, message)
}
