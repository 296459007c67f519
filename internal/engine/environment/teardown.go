package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/describe"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

const (
	// DefaultCleanupTimeout is how long teardown waits until everything is gone. The namespace controller starts after 5 s.
	DefaultCleanupTimeout = 90 * time.Second
	// teardownPolling is the interval for reading a namespace; watching requires an additional permission.
	teardownPolling = 200 * time.Millisecond
	// sweeping is the interval for checking for pods whose grace period is over, and for work that a controller has not done.
	sweeping = 5 * time.Second
	// forcing is how long before the end of the wait the remaining pods are deleted immediately.
	forcing = 20 * time.Second
	// lookingBack limits the time for finding out what is left after the timeout.
	lookingBack = 30 * time.Second
)

// teardown removes what a run created.
type teardown struct {
	*Environment
	with *client.Client
	how  client.Removal
	// began is when it started, and end when it gives up.
	began, end time.Time
	// unattended is the time after which a controller that has not acted counts as missing.
	unattended time.Time
}

// Teardown removes everything that the run created, and waits until it is gone. It removes the run's own finalizers and waits for those of
// other controllers. After the cleanup timeout it fails with an error that names what is left and what holds it. Unless the user set the
// timeout, it is multiplied by the slowness of the cluster.
func (e *Environment) Teardown(ctx context.Context) error {
	e.lease.release()
	t := e.newTeardown(time.Now())
	waiting, cancel := context.WithDeadline(ctx, t.end)
	defer cancel()
	if response := t.with.Send(waiting, client.Request{Method: http.MethodGet, Path: "/version"}); response.StatusCode == 0 {
		return fmt.Errorf("the server no longer responds: %w", response.Err)
	} else if apierrors.IsUnauthorized(response.Err) {
		return fmt.Errorf("the server no longer accepts the credentials (401): %w", response.Err)
	}
	t.with.Rediscover()
	started := e.startController(waiting)
	if e.inSharedNamespace() {
		return errors.Join(started, t.emptySharedNamespace(ctx, waiting))
	}
	return errors.Join(t.removeAll(ctx, waiting), started)
}

func (e *Environment) newTeardown(now time.Time) *teardown {
	patience := e.options.CleanupTimeout
	if patience == 0 {
		patience = e.slowed(DefaultCleanupTimeout)
	}
	t := &teardown{
		Environment: e, with: e.client, how: e.removal(), began: now, end: now.Add(patience), unattended: now.Add(e.unattendedAfter()),
	}
	t.how.Overdue = t.isOverdue
	return t
}

// removal returns how the run removes its objects.
func (e *Environment) removal() client.Removal {
	removal := client.Removal{AllFinalizers: e.options.ForceFinalizers}
	for _, need := range []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM} {
		if e.unsupported[need] != "" && !e.unprobed {
			removal.Absent = append(removal.Absent, need)
		}
	}
	return removal
}

// removeAll removes the run's cluster-scoped objects, its namespaces and, when controllers have had the time to report the deletions, Events.
func (t *teardown) removeAll(ctx, waiting context.Context) error {
	namespaces, err := t.allNamespaces(waiting)
	held, failures := t.clearClusterScoped(waiting)
	failures = append(failures, err)
	failed := make([]error, len(namespaces))
	terminating := make([]*awaited, len(namespaces))
	crash.InParallel(t.workers(), len(namespaces), func(i int) { terminating[i], failed[i] = t.removeNamespace(waiting, namespaces[i]) })
	terminating = slices.DeleteFunc(terminating, func(one *awaited) bool { return one == nil })
	t.clearEventsOnce(waiting) // most of them, while namespaces are deleted
	failures = append(failures, errors.Join(failed...), t.awaitNamespaces(ctx, waiting, terminating), t.awaitClusterScoped(ctx, waiting, held))
	t.clearEvents(waiting)
	return errors.Join(failures...)
}

// allNamespaces returns the namespaces that the run created, including those of specs if the credentials may list them.
func (t *teardown) allNamespaces(ctx context.Context) ([]*client.Object, error) {
	all := slices.Clone(t.namespaces)
	labelled, response := t.with.List(ctx, client.Namespaces, client.RunLabel+"="+t.options.Run)
	for _, namespace := range slices.DeleteFunc(labelled, t.foreign(client.Namespaces)) {
		if !slices.ContainsFunc(all, func(known *client.Object) bool { return known.GetName() == namespace.GetName() }) {
			all = append(all, namespace)
		}
	}
	if response.Err != nil && !unserved(response) {
		return all, fmt.Errorf("list the namespaces of run %s: %w", t.options.Run, response.Err)
	}
	return all, nil
}

// foreign reports which objects of a collection the run did not create, whatever their labels are.
func (t *teardown) foreign(collection client.Collection) func(*client.Object) bool {
	return func(object *client.Object) bool {
		return !t.with.Owns(collection, object)
	}
}

// clearClusterScoped removes the run's objects of every cluster-scoped kind except namespaces, which take longer, and returns the
// collections that contained any. Objects that the credentials may not list, they could not create.
func (t *teardown) clearClusterScoped(ctx context.Context) (held []client.Collection, failures []error) {
	run := t.options.Run
	collections, err := t.with.Removable("")
	if err != nil {
		return nil, []error{fmt.Errorf("delete the cluster-scoped objects of run %s: %w", run, err)}
	}
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		if collection.Resource == client.Namespaces.Resource {
			continue
		}
		if ctx.Err() != nil {
			return held, append(failures, fmt.Errorf("delete the cluster-scoped objects of run %s: %w", run, ctx.Err()))
		}
		found, response := t.with.RemoveEach(ctx, collection, client.RunLabel+"="+run, t.how)
		if len(found) > 0 {
			held = append(held, collection)
		}
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("delete the %s of run %s: %w", collection.Resource.Resource, run, response.Err))
		}
	}
	return held, failures
}

// awaitClusterScoped waits until collections of cluster-scoped objects contain no object of the run.
func (t *teardown) awaitClusterScoped(ctx, waiting context.Context, collections []client.Collection) error {
	var left []*client.Object
	swept := time.Now()
	look := func(ctx context.Context) (bool, error) {
		if time.Since(swept) > sweeping {
			t.releaseCustomResources(ctx)
			swept = time.Now()
		}
		left = nil
		for _, collection := range collections {
			objects, _ := t.with.List(ctx, collection, client.RunLabel+"="+t.options.Run)
			left = append(left, slices.DeleteFunc(objects, t.foreign(collection))...)
		}
		return len(left) == 0, nil
	}
	if err := wait.PollUntilContextCancel(waiting, teardownPolling, true, look); err == nil {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, lookingBack)
	defer cancel()
	if gone, _ := look(looking); gone {
		return nil
	}
	return errors.New("cluster-scoped objects still exist:" + listed(left))
}

// releaseCustomResources removes the run's custom resources of the run's definitions in all namespaces. After a start of the API server,
// discovery does not show them for some time, so that neither teardown nor the namespace controller may have found them. It also writes the
// definitions, because the API server then tries again at once to delete one whose objects it could not list; otherwise it waits longer after
// each attempt.
func (t *teardown) releaseCustomResources(ctx context.Context) {
	run := t.options.Run
	definitions, _ := t.with.List(ctx, customResourceDefinitions, client.RunLabel+"="+run)
	for _, definition := range slices.DeleteFunc(definitions, t.foreign(customResourceDefinitions)) {
		t.with.RemoveDefined(ctx, definition, metav1.NamespaceAll, client.RunLabel+"="+run, t.how) // what remains is listed at the end
		t.with.Patch(ctx, definition, types.MergePatchType, map[string]any{"metadata": map[string]any{
			"uid": definition.GetUID(), "annotations": map[string]any{client.Domain + "/awaited": time.Now().UTC().Format(time.RFC3339Nano)},
		}}, "")
	}
}

// unserved reports whether the run cannot have created objects in a collection: it may not be listed, or does not exist.
func unserved(response client.Response) bool {
	return apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) || apierrors.IsMethodNotSupported(response.Err)
}

// removeNamespace deletes a namespace and its content, including holds.
func (t *teardown) removeNamespace(ctx context.Context, namespace *client.Object) (*awaited, error) {
	read := t.with.Get(ctx, namespace)
	if read.Err == nil {
		t.with.RemoveFinalizers(ctx, read.Object, t.how)
	}
	begun := &awaited{last: namespace, readable: read.Err == nil, attended: t.began, collected: slices.Contains(t.how.Absent, v1alpha1.GC)}
	response := t.with.Delete(ctx, namespace, metav1.DeleteOptions{})
	if ctx.Err() != nil {
		return begun, fmt.Errorf("delete namespace %q: %w", namespace.GetName(), ctx.Err()) // what holds it is listed at the end
	}
	if response.Err != nil && !apierrors.IsNotFound(response.Err) {
		return nil, fmt.Errorf("delete namespace %q: %w", namespace.GetName(), response.Err)
	}
	return begun, t.empty(ctx, namespace.GetName(), t.how)
}

// empty removes every object of every kind in a namespace of the run. The namespace controller deletes kinds for which a permission is
// missing.
func (t *teardown) empty(ctx context.Context, namespace string, how client.Removal) error {
	collections, err := t.with.Removable(namespace)
	if err != nil {
		return fmt.Errorf("discover the resources of namespace %q: %w", namespace, err)
	}
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		// A kind that cannot be cleared holds the namespace, and is named there.
		_ = t.with.Clear(ctx, collection, "", how)
	}
	return nil
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
		crash.InParallel(t.workers(), len(others), func(i int) { others[i].gone = t.attend(ctx, others[i]) })
		left = slices.DeleteFunc(left, func(one *awaited) bool { return one.gone })
		return len(left) == 0, nil
	})
	if err == nil {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, lookingBack)
	defer cancel()
	var failures []error
	for _, one := range left {
		failures = append(failures, t.stays(looking, one.last))
	}
	return errors.Join(failures...)
}

// attend reports whether a namespace is gone, and does what no controller does: it deletes pods whose grace period is over, and finalizes
// the namespace if there is no namespace controller.
func (t *teardown) attend(ctx context.Context, one *awaited) (gone bool) {
	read := t.with.Get(ctx, one.last)
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
	if t.isNeglected(one.last) {
		t.finishEmpty(ctx, one.last)
		return false
	}
	t.endPods(ctx, name)
	if unattended && !one.collected {
		t.collect(ctx, name)
		one.collected = true
	}
	return false
}

// isNeglected reports whether no controller has set a condition of a namespace for so long that there is none.
func (t *teardown) isNeglected(namespace *client.Object) bool {
	return time.Now().After(t.unattended) && len(describe.Conditions(namespace)) == 0
}

// finishEmpty finalizes an empty namespace without a controller.
func (t *teardown) finishEmpty(ctx context.Context, namespace *client.Object) {
	how := t.how
	how.Absent = []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM}
	if len(t.how.Absent) < len(how.Absent) && t.empty(ctx, namespace.GetName(), how) != nil {
		return
	}
	if left, err := t.contentOf(ctx, namespace.GetName()); err == nil && len(left) == 0 {
		t.finalize(ctx, namespace, string(corev1.FinalizerKubernetes))
	}
}

// endPods deletes the pods in a namespace whose nodes had enough time to stop them.
func (t *teardown) endPods(ctx context.Context, namespace string) {
	pods := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: namespace}
	how := t.how
	how.Except = func(pod *client.Object) bool { return !t.isOverdue(pod) }
	_, _ = t.with.RemoveEach(ctx, pods, "", how) // what remains is listed at the end
}

// collect removes objects that a garbage collector should have deleted by now.
func (t *teardown) collect(ctx context.Context, namespace string) {
	_ = t.empty(ctx, namespace, t.withoutGarbageCollector()) // what remains is listed at the end
}

// withoutGarbageCollector returns how the run removes its objects when no garbage collector has acted in time.
func (t *teardown) withoutGarbageCollector() client.Removal {
	how := t.how
	how.Absent = append(slices.Clone(how.Absent), v1alpha1.GC)
	return how
}

// isOverdue reports whether the grace period of a pod, counted from the start of the teardown at the latest, is over, or hardly any time is
// left.
func (t *teardown) isOverdue(pod *client.Object) bool {
	grace := pod.GetDeletionGracePeriodSeconds()
	if grace == nil {
		return false
	}
	own := t.began.Add(time.Duration(*grace)*time.Second + t.slowed(killing))
	return time.Now().After(own) || time.Until(t.end) < forcing
}

// killing limits how long a node may take to stop a pod whose grace period is over.
const killing = 10 * time.Second

// contentOf returns the objects in a namespace. It fails when not all can be listed: who cleans up may have other permissions than the run.
func (t *teardown) contentOf(ctx context.Context, namespace string) ([]*client.Object, error) {
	collections, err := t.with.Removable(namespace)
	if err != nil {
		return nil, err
	}
	var content []*client.Object
	var failures []error
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		objects, response := t.with.List(ctx, collection, "")
		content = append(content, objects...)
		if response.Err != nil && (apierrors.IsForbidden(response.Err) || !unserved(response)) {
			failures = append(failures, response.Err)
		}
	}
	return content, errors.Join(failures...)
}

// isHeldBySpec reports whether the namespace controller has finished, and only a finalizer that a spec added holds the namespace.
func isHeldBySpec(namespace *client.Object) bool {
	finalizers := specFinalizers(namespace)
	return slices.ContainsFunc(finalizers, isOwnFinalizer) && !slices.Contains(finalizers, string(corev1.FinalizerKubernetes))
}

func isOwnFinalizer(finalizer string) bool { return client.Removal{}.Removes(finalizer) }

func specFinalizers(namespace *client.Object) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	return finalizers
}

// slowed multiplies a time by the slowness that setup measured.
func (e *Environment) slowed(usual time.Duration) time.Duration {
	return e.options.ForSlowness(e.Latency().Slowness()).Slowed(usual)
}

const (
	// unattendedTime is how long a namespace may be terminating without a condition before its controller counts as missing: the namespace
	// controller starts after 5 s, and sets its conditions at once.
	unattendedTime = 8 * time.Second
	// busyTime is the same on a cluster where some controllers are known to work, because all are slower on a busy cluster. If a controller
	// is mistaken for missing, objects that the run cannot list may remain in storage after the namespace is gone.
	busyTime = 30 * time.Second
)

// unattendedAfter returns one of these, multiplied by the slowness of the cluster, or 0 when setup found no controllers.
func (e *Environment) unattendedAfter() time.Duration {
	switch {
	case e.unprobed:
		return e.slowed(unattendedTime)
	case e.unsupported[v1alpha1.KCM] != "" && e.unsupported[v1alpha1.GC] != "":
		return 0
	}
	return e.slowed(busyTime)
}

// finalize removes finalizers from a namespace's spec: the run's own and the given ones, as the namespace controller does with its own. The
// server rejects the update after a concurrent write.
func (t *teardown) finalize(ctx context.Context, namespace *client.Object, finalizers ...string) {
	namespace = namespace.DeepCopy()
	kept := slices.DeleteFunc(specFinalizers(namespace), func(finalizer string) bool {
		return slices.Contains(finalizers, finalizer) || t.how.Removes(finalizer)
	})
	// This cannot fail, because a namespace's spec is an object.
	_ = unstructured.SetNestedStringSlice(namespace.Object, kept, "spec", "finalizers")
	t.with.Update(ctx, namespace, "finalize")
}
