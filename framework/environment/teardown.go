package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

const (
	// teardownTimeout bounds how long a run waits for its namespaces to go. The namespace controller takes 5 s to begin.
	teardownTimeout = 90 * time.Second
	// teardownPolling is how often a namespace is looked for; watching one takes a permission that looking does not.
	teardownPolling = 200 * time.Millisecond
)

// Teardown removes everything the run made, holds included, and waits until it is gone. It fails, naming what is left,
// when that does not succeed within some 90 seconds, or as many times longer as the cluster is slow.
func (e *Environment) Teardown(ctx context.Context) error {
	e.lease.release()
	ctx, cancel := context.WithTimeout(ctx, e.slowed(teardownTimeout))
	defer cancel()
	if response := e.client.Send(ctx, client.Request{Method: http.MethodGet, Path: "/version"}); response.StatusCode == 0 {
		return fmt.Errorf("the server does not answer any more: %w", response.Err)
	} else if apierrors.IsUnauthorized(response.Err) {
		return fmt.Errorf("the server does not accept the credentials any more (401): %w", response.Err)
	}
	e.client.Rediscover()
	restored := errors.Join(e.startController(ctx), e.restoreDefinitions(ctx))
	if e.staysInside() {
		return errors.Join(restored, e.moveOut(ctx))
	}
	failures := append(clearClusterScoped(ctx, e.client, e.options.Run), restored)
	var terminating []*client.Object
	for _, namespace := range e.allNamespaces(ctx) {
		if err := removeNamespace(ctx, e.client, namespace); err != nil {
			failures = append(failures, err)
			continue
		}
		terminating = append(terminating, namespace)
	}
	unattended := time.Now().Add(e.unattendedAfter())
	for _, namespace := range terminating {
		failures = append(failures, awaitRemoval(ctx, e.client, namespace, unattended))
	}
	return errors.Join(failures...)
}

// allNamespaces are the namespaces that the run made, those of specs included where the credentials allow to find them.
func (e *Environment) allNamespaces(ctx context.Context) []*client.Object {
	all := slices.Clone(e.namespaces)
	labelled, _ := e.client.List(ctx, client.Namespaces, client.RunLabel+"="+e.options.Run)
	for _, namespace := range labelled {
		if !slices.ContainsFunc(all, func(known *client.Object) bool { return known.GetName() == namespace.GetName() }) {
			all = append(all, namespace)
		}
	}
	return all
}

// clearClusterScoped removes the run's objects of every cluster-scoped kind but namespaces, which take longer. What the
// credentials do not allow to look at, they did not allow to create.
func clearClusterScoped(ctx context.Context, with *client.Client, run string) []error {
	collections, err := with.Removable("")
	if err != nil {
		return []error{fmt.Errorf("remove the cluster-scoped objects of run %s: %w", run, err)}
	}
	var failures []error
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		if collection.Resource == client.Namespaces.Resource {
			continue
		}
		response := with.RemoveEach(ctx, collection, client.RunLabel+"="+run)
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("remove the %s of run %s: %w", collection.Resource.Resource, run, response.Err))
		}
	}
	return failures
}

// unserved says that the run has made nothing in a collection: it may not be looked at, or is not what discovery says.
func unserved(response client.Response) bool {
	return apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) || apierrors.IsMethodNotSupported(response.Err)
}

// removeNamespace asks for a namespace's deletion and empties it, holds included.
func removeNamespace(ctx context.Context, with *client.Client, namespace *client.Object) error {
	response := with.Delete(ctx, namespace, metav1.DeleteOptions{})
	if response.Err != nil && !apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("delete namespace %q: %w", namespace.GetName(), response.Err)
	}
	if len(namespace.GetFinalizers()) > 0 {
		with.Patch(ctx, namespace, types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": nil}}, "")
	}
	return empty(ctx, with, namespace.GetName())
}

// empty removes every object of every kind in a namespace of the run's own. Kinds that the credentials may not touch
// are left to the namespace controller.
func empty(ctx context.Context, with *client.Client, namespace string) error {
	collections, err := with.Removable(namespace)
	if err != nil {
		return fmt.Errorf("find what namespace %q may hold: %w", namespace, err)
	}
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		// A kind that cannot be cleared holds the namespace, and is named there.
		_ = with.Clear(ctx, collection, "")
	}
	return nil
}

// inOrder orders collections so that what may refuse removals is removed before everything else (webhooks, admission
// policies), and what says who may remove things after it.
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

// awaitRemoval waits until a namespace is gone. Where no controller is at work on it by a moment, which its conditions
// tell, the namespace is empty by then and is finalized here.
func awaitRemoval(ctx context.Context, with *client.Client, namespace *client.Object, unattended time.Time) error {
	var response client.Response
	err := wait.PollUntilContextCancel(ctx, teardownPolling, true, func(ctx context.Context) (bool, error) {
		response = with.Get(ctx, namespace)
		if apierrors.IsNotFound(response.Err) || apierrors.IsForbidden(response.Err) {
			return true, nil
		}
		if response.Err == nil && awaitsFinalize(response.Object, unattended) {
			finalize(ctx, with, response.Object)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("namespace %q is still there: %s", namespace.GetName(), whyNamespaceStays(response))
	}
	return nil
}

// awaitsFinalize says that nobody else will finalize a namespace: no controller has been at work on it by a moment, or one has
// and left it to a finalizer of a spec's.
func awaitsFinalize(namespace *client.Object, unattended time.Time) bool {
	neglected := time.Now().After(unattended) && len(describe.Conditions(namespace)) == 0
	return neglected || isHeldBySpec(namespace)
}

// isHeldBySpec says that the namespace controller has done its part, and a finalizer that a spec gave the namespace holds it.
func isHeldBySpec(namespace *client.Object) bool {
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	return len(finalizers) > 0 && !slices.Contains(finalizers, string(corev1.FinalizerKubernetes))
}

// slowed is a time that is enough on a fast cluster, made as many times longer as the cluster was slow when the run was set up.
func (e *Environment) slowed(usual time.Duration) time.Duration {
	return e.options.ForSlowness(e.Pace().Slowness()).Slowed(usual)
}

const (
	// unattendedTime is how long a namespace may be terminating without a condition before nobody is thought to attend to
	// it: the namespace controller begins after 5 s, and sets its conditions at once.
	unattendedTime = 8 * time.Second
	// busyTime is the same where some controllers are known to be at work, which all take longer on a busy cluster.
	// Where one is taken for absent and is not, what the run does not see in the namespace stays when that is gone.
	busyTime = 30 * time.Second
)

// unattendedAfter is one of these, as many times longer as the cluster is slow, or nothing where the run has found out
// that there are no controllers.
func (e *Environment) unattendedAfter() time.Duration {
	switch {
	case e.unprobed:
		return e.slowed(unattendedTime)
	case e.unsupported[v1alpha1.KCM] != "" && e.unsupported[v1alpha1.GC] != "":
		return 0
	}
	return e.slowed(busyTime)
}

// finalize does what the namespace controller does at its end: it takes the finalizer off an empty namespace's spec.
func finalize(ctx context.Context, with *client.Client, namespace *client.Object) {
	namespace = namespace.DeepCopy()
	unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
	with.Update(ctx, namespace, "finalize")
}

// whyNamespaceStays tells what the namespace controller says about a namespace that does not go.
func whyNamespaceStays(response client.Response) string {
	switch {
	case response.Err != nil:
		return response.Message()
	case response.Object == nil:
		return "the time was up before the server had answered"
	}
	var reasons []string
	for _, condition := range describe.Conditions(response.Object) {
		if condition.Status == metav1.ConditionTrue {
			reasons = append(reasons, condition.Message)
		}
	}
	if len(reasons) == 0 {
		return "nothing is said to hold it"
	}
	return strings.Join(reasons, "; ")
}
