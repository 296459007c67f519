package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// removeNamespace deletes a namespace and its content, including holds.
func (t *teardown) removeNamespace(ctx context.Context, namespace *client.Object) (*awaited, error) {
	read := t.client.Get(ctx, namespace)
	if read.Err == nil {
		t.client.RemoveFinalizers(ctx, read.Object, t.removal)
	}
	begun := &awaited{last: namespace, readable: read.Err == nil, attended: t.began, collected: slices.Contains(t.removal.Absent, v1alpha1.GC)}
	response := t.client.Delete(ctx, namespace, metav1.DeleteOptions{})
	if ctx.Err() != nil {
		return begun, fmt.Errorf("delete namespace %q: %w", namespace.GetName(), ctx.Err()) // what holds it is listed at the end
	}
	if response.Err != nil && !apierrors.IsNotFound(response.Err) {
		return nil, fmt.Errorf("delete namespace %q: %w", namespace.GetName(), response.Err)
	}
	return begun, t.empty(ctx, namespace.GetName(), t.removal)
}

// awaited is a namespace that teardown waits for.
type awaited struct {
	// last is the namespace as it was last read.
	last *client.Object
	// readable is set after it could be read.
	readable bool
	// attended is when something was last done for it, and collected is set after the garbage collector's finalizers were removed.
	attended  time.Time
	collected bool
	gone      bool
}

// awaitNamespaces waits until namespaces are gone. It reads the first one often, and all of them when that is gone, and at intervals.
func (t *teardown) awaitNamespaces(ctx, waiting context.Context, left []*awaited) error {
	looked := t.began
	err := wait.PollUntilContextCancel(waiting, teardownPolling, true, func(ctx context.Context) (bool, error) {
		if len(left) == 0 {
			return true, nil
		}
		if left[0].gone = t.attend(ctx, left[0]); !left[0].gone && time.Since(looked) <= sweeping {
			return false, nil
		}
		looked = time.Now()
		t.releaseCustomResources(ctx)
		others := left[1:]
		crash.InParallel(t.workers, len(others), func(i int) { others[i].gone = t.attend(ctx, others[i]) })
		left = slices.DeleteFunc(left, func(one *awaited) bool { return one.gone })
		return len(left) == 0, nil
	})
	if err == nil {
		return nil
	}
	looking, cancel := context.WithDeadline(ctx, t.lookEnd)
	defer cancel()
	var failures []error
	for _, one := range left {
		failures = append(failures, t.remainsError(looking, one.last))
	}
	return errors.Join(failures...)
}

// attend reports whether a namespace is gone, and does what no controller does: it deletes pods whose grace period is over, and finalizes
// the namespace if there is no namespace controller.
func (t *teardown) attend(ctx context.Context, one *awaited) (gone bool) {
	read := t.client.Get(ctx, one.last)
	if read.Err != nil {
		// The permission to read a namespace may end with it.
		return apierrors.IsNotFound(read.Err) || one.readable && apierrors.IsForbidden(read.Err)
	}
	one.last, one.readable = read.Object, true
	name, unattended := one.last.GetName(), time.Now().After(t.unattended)
	if isHeldBySpec(one.last) {
		t.finalize(ctx, one.last)
		return false
	}
	if first := unattended && !one.attended.After(t.unattended); time.Since(one.attended) < sweeping && !first {
		return false
	}
	one.attended = time.Now()
	if unattended && len(describe.Conditions(one.last)) == 0 { // no controller has set one for so long that there is none
		t.finishEmpty(ctx, one.last)
		return false
	}
	t.endPods(ctx, name)
	if unattended && !one.collected {
		_ = t.empty(ctx, name, t.withoutGarbageCollector()) // what remains is listed at the end
		one.collected = true
	}
	return false
}

// finishEmpty finalizes an empty namespace without a controller.
func (t *teardown) finishEmpty(ctx context.Context, namespace *client.Object) {
	removal := t.removal
	removal.Absent = []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM}
	if len(t.removal.Absent) < len(removal.Absent) && t.empty(ctx, namespace.GetName(), removal) != nil {
		return
	}
	if left, err := contentOf(ctx, t.client, namespace.GetName(), ""); err == nil && len(left) == 0 {
		t.finalize(ctx, namespace, string(corev1.FinalizerKubernetes))
	}
}

// endPods deletes the pods in a namespace whose nodes had enough time to stop them.
func (t *teardown) endPods(ctx context.Context, namespace string) {
	pods := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: namespace}
	removal := t.removal
	removal.Except = func(pod *client.Object) bool { return !t.isOverdue(pod) }
	_, _ = t.client.RemoveEach(ctx, pods, "", removal) // what remains is listed at the end
}

// empty removes every object of every kind in a namespace of the run. The namespace controller deletes kinds for which a permission is
// missing.
func (t *teardown) empty(ctx context.Context, namespace string, removal client.Removal) error {
	collections, err := removable(t.client, namespace)
	if err != nil {
		return fmt.Errorf("discover the resources of namespace %q: %w", namespace, err)
	}
	for _, collection := range collections {
		// A kind that cannot be cleared holds the namespace, and is named there.
		_ = t.client.Clear(ctx, collection, "", removal)
	}
	return nil
}

// contentOf returns the objects in a namespace, first those of the resources that the namespace controller's report names. It fails when not
// all can be listed: who cleans up may have other permissions than the run, or no time.
func contentOf(ctx context.Context, with *client.Client, namespace, report string) ([]*client.Object, error) {
	collections, err := removable(with, namespace)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(collections, func(a, b client.Collection) int {
		return cmp.Compare(strings.Index(report, remaining(b)), strings.Index(report, remaining(a)))
	})
	var content []*client.Object
	var failures []error
	for _, collection := range collections {
		objects, response := with.List(ctx, collection, "")
		content = append(content, objects...)
		if response.Err != nil && (apierrors.IsForbidden(response.Err) || !unserved(response)) {
			failures = append(failures, response.Err)
		}
	}
	return content, errors.Join(failures...)
}

// remaining is how the namespace controller reports that objects of a collection remain: "pods. has 1 resource instances".
func remaining(collection client.Collection) string {
	return fmt.Sprintf(" %s.%s has ", collection.Resource.Resource, collection.Resource.Group)
}

// isHeldBySpec reports whether the namespace controller has finished, and only a finalizer that a spec added holds the namespace.
func isHeldBySpec(namespace *client.Object) bool {
	finalizers := specFinalizers(namespace)
	return slices.ContainsFunc(finalizers, client.Removal{}.Removes) && !slices.Contains(finalizers, string(corev1.FinalizerKubernetes))
}

func specFinalizers(namespace *client.Object) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	return finalizers
}

// finalize removes finalizers from a namespace's spec: the run's own and the given ones, as the namespace controller does with its own. The
// server rejects the update after a concurrent write.
func (t *teardown) finalize(ctx context.Context, namespace *client.Object, finalizers ...string) {
	namespace = namespace.DeepCopy()
	kept := slices.DeleteFunc(specFinalizers(namespace), func(finalizer string) bool {
		return slices.Contains(finalizers, finalizer) || t.removal.Removes(finalizer)
	})
	// This cannot fail, because a namespace's spec is an object.
	_ = unstructured.SetNestedStringSlice(namespace.Object, kept, "spec", "finalizers")
	t.client.Update(ctx, namespace, "finalize")
}

// remainsError returns the error for a namespace that still exists, with the reason.
func (t *teardown) remainsError(ctx context.Context, namespace *client.Object) error {
	read := t.client.Get(ctx, namespace)
	switch {
	case apierrors.IsNotFound(read.Err):
		return nil
	case read.Err != nil:
		return fmt.Errorf("namespace %q may still exist: %w", namespace.GetName(), read.Err)
	}
	namespace = read.Object
	text := fmt.Sprintf("namespace %q still exists", namespace.GetName())
	reasons := terminatingReason(t.client, namespace)
	if reasons != "" {
		text += ": " + reasons
	}
	content, _ := contentOf(ctx, t.client, namespace.GetName(), reasons) // objects that cannot be listed are at least counted by the report
	content = slices.DeleteFunc(content, func(object *client.Object) bool { return len(object.GetFinalizers()) == 0 })
	if len(namespace.GetFinalizers()) > 0 {
		content = append([]*client.Object{namespace}, content...)
	}
	return fmt.Errorf("%s%s", text, listed(content))
}

// terminatingReason returns what the namespace controller reports about a namespace that is not deleted; empty without a report.
func terminatingReason(with *client.Client, namespace *client.Object) string {
	var reasons []string
	for _, condition := range describe.Conditions(namespace) {
		switch {
		case condition.Status != metav1.ConditionTrue:
		case condition.Type == string(corev1.NamespaceDeletionDiscoveryFailure):
			reasons = append(reasons, unavailableServices(with.UnavailableAPIServices(), condition.Message))
		default:
			reasons = append(reasons, condition.Message)
		}
	}
	return strings.Join(reasons, "; ")
}

// unavailableServices names the APIServices that keep the namespace controller from deleting any namespace, and the remedy.
func unavailableServices(services []string, message string) string {
	which := "an APIService"
	if len(services) > 0 {
		which = "APIService " + strings.Join(services, " and APIService ")
	}
	return fmt.Sprintf("%s is unavailable, and Kubernetes deletes no namespaces until it can discover all APIs: "+
		"repair its server, or delete the APIService if it is unused (kubectl get apiservices); condition of the namespace: %s", which, message)
}
