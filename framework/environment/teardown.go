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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/client"
	"github.com/deletion-conformance/deletion-conformance/framework/internal/describe"
)

const (
	// DefaultCleanupTimeout is how long a run waits until everything it made is gone. The namespace controller takes 5 s to begin.
	DefaultCleanupTimeout = 90 * time.Second
	// teardownPolling is how often a namespace is looked for; watching one takes a permission that looking does not.
	teardownPolling = 200 * time.Millisecond
	// sweeping is how often it is looked for pods whose grace is over, and for what a controller has left.
	sweeping = 5 * time.Second
	// forcing is how long before the end of the wait pods are deleted at once whose grace is not over yet.
	forcing = 20 * time.Second
	// lookingBack is how long it may take to find out what is left when the time is up.
	lookingBack = 30 * time.Second
)

// teardown is the removal of what a run made.
type teardown struct {
	*Environment
	with *client.Client
	how  client.Removal
	// began is when it began, and end when it gives up.
	began, end time.Time
	// unattended is the moment from which a controller that has not acted is taken for absent.
	unattended time.Time
}

// Teardown removes everything the run made, and waits until it is gone. The run's own finalizers are removed; those of other
// controllers are waited for. It fails, naming what is left and what holds it, when that takes longer than the cleanup timeout, which
// is as many times longer as the cluster is slow unless the user has chosen it.
func (e *Environment) Teardown(ctx context.Context) error {
	e.lease.release()
	t := e.newTeardown(time.Now())
	waiting, cancel := context.WithDeadline(ctx, t.end)
	defer cancel()
	if response := t.with.Send(waiting, client.Request{Method: http.MethodGet, Path: "/version"}); response.StatusCode == 0 {
		return fmt.Errorf("the server does not answer any more: %w", response.Err)
	} else if apierrors.IsUnauthorized(response.Err) {
		return fmt.Errorf("the server does not accept the credentials any more (401): %w", response.Err)
	}
	t.with.Rediscover()
	restored := errors.Join(e.startController(waiting), e.restoreDefinitions(waiting))
	if e.inSharedNamespace() {
		return errors.Join(restored, t.emptySharedNamespace(ctx, waiting))
	}
	return errors.Join(t.removeAll(ctx, waiting), restored)
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

// removal is how the run removes what it made.
func (e *Environment) removal() client.Removal {
	removal := client.Removal{AllFinalizers: e.options.ForceFinalizers}
	for _, need := range []v1alpha1.Feature{v1alpha1.GC, v1alpha1.KCM} {
		if e.unsupported[need] != "" && !e.unprobed {
			removal.Absent = append(removal.Absent, need)
		}
	}
	return removal
}

// removeAll removes the run's cluster-scoped objects and its namespaces.
func (t *teardown) removeAll(ctx, waiting context.Context) error {
	held, failures := t.clearClusterScoped(waiting)
	var terminating []*client.Object
	for _, namespace := range t.allNamespaces(waiting) {
		if err := t.removeNamespace(waiting, namespace); err != nil {
			failures = append(failures, err)
			continue
		}
		terminating = append(terminating, namespace)
	}
	failures = append(failures, t.awaitNamespaces(ctx, waiting, terminating), t.awaitClusterScoped(ctx, waiting, held))
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

// clearClusterScoped removes the run's objects of every cluster-scoped kind but namespaces, which take longer, and returns the
// collections in which there were any. What the credentials do not allow to look at, they did not allow to create.
func (t *teardown) clearClusterScoped(ctx context.Context) (held []client.Collection, failures []error) {
	run := t.options.Run
	collections, err := t.with.Removable("")
	if err != nil {
		return nil, []error{fmt.Errorf("remove the cluster-scoped objects of run %s: %w", run, err)}
	}
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		if collection.Resource == client.Namespaces.Resource {
			continue
		}
		found, response := t.with.RemoveEach(ctx, collection, client.RunLabel+"="+run, t.how)
		if len(found) > 0 {
			held = append(held, collection)
		}
		if response.Err != nil && !unserved(response) {
			failures = append(failures, fmt.Errorf("remove the %s of run %s: %w", collection.Resource.Resource, run, response.Err))
		}
	}
	return held, failures
}

// awaitClusterScoped waits until nothing of the run is in collections of cluster-scoped objects.
func (t *teardown) awaitClusterScoped(ctx, waiting context.Context, collections []client.Collection) error {
	var left []*client.Object
	look := func(ctx context.Context) (bool, error) {
		left = nil
		for _, collection := range collections {
			objects, _ := t.with.List(ctx, collection, client.RunLabel+"="+t.options.Run)
			left = append(left, objects...)
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
	return errors.New("cluster-scoped objects are still there:" + listed(left))
}

// unserved says that the run has made nothing in a collection: it may not be looked at, or is not what discovery says.
func unserved(response client.Response) bool {
	return apierrors.IsForbidden(response.Err) || apierrors.IsNotFound(response.Err) || apierrors.IsMethodNotSupported(response.Err)
}

// removeNamespace asks for a namespace's deletion and empties it, holds included.
func (t *teardown) removeNamespace(ctx context.Context, namespace *client.Object) error {
	response := t.with.Delete(ctx, namespace, metav1.DeleteOptions{})
	if response.Err != nil && !apierrors.IsNotFound(response.Err) {
		return fmt.Errorf("delete namespace %q: %w", namespace.GetName(), response.Err)
	}
	if read := t.with.Get(ctx, namespace); read.Err == nil {
		t.with.LetGo(ctx, read.Object, t.how)
	}
	return t.empty(ctx, namespace.GetName(), t.how)
}

// empty removes every object of every kind in a namespace of the run's own. Kinds that the credentials may not touch
// are left to the namespace controller.
func (t *teardown) empty(ctx context.Context, namespace string, how client.Removal) error {
	collections, err := t.with.Removable(namespace)
	if err != nil {
		return fmt.Errorf("find what namespace %q may hold: %w", namespace, err)
	}
	for _, collection := range slices.SortedFunc(slices.Values(collections), inOrder) {
		// A kind that cannot be cleared holds the namespace, and is named there.
		_ = t.with.Clear(ctx, collection, "", how)
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

// awaited is a namespace that is waited for.
type awaited struct {
	// last is the namespace as it was last read.
	last *client.Object
	// attended is when something was done for it last, and collected says that the garbage collector's finalizers are off.
	attended  time.Time
	collected bool
}

// awaitNamespaces waits until namespaces are gone. It looks at the first one often, and at all of them at times.
func (t *teardown) awaitNamespaces(ctx, waiting context.Context, namespaces []*client.Object) error {
	var left []*awaited
	for _, namespace := range namespaces {
		left = append(left, &awaited{last: namespace, attended: t.began, collected: slices.Contains(t.how.Absent, v1alpha1.GC)})
	}
	looked := t.began
	err := wait.PollUntilContextCancel(waiting, teardownPolling, true, func(ctx context.Context) (bool, error) {
		all, stopped := time.Since(looked) > sweeping, false
		if all {
			looked = time.Now()
		}
		left = slices.DeleteFunc(left, func(one *awaited) bool {
			gone := (all || !stopped) && t.attend(ctx, one)
			stopped = stopped || !gone
			return gone
		})
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

// attend says whether a namespace is gone, and does what nobody else does for that: it ends pods whose grace is over, and finalizes
// the namespace where no controller does.
func (t *teardown) attend(ctx context.Context, one *awaited) (gone bool) {
	read := t.with.Get(ctx, one.last)
	if read.Err != nil {
		return apierrors.IsNotFound(read.Err) || apierrors.IsForbidden(read.Err)
	}
	one.last = read.Object
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

// isNeglected says that no controller has been at work on a namespace for so long that there is none, which its conditions tell.
func (t *teardown) isNeglected(namespace *client.Object) bool {
	return time.Now().After(t.unattended) && len(describe.Conditions(namespace)) == 0
}

// finishEmpty finalizes a namespace that no controller attends to, once nothing is in it.
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

// endPods ends the pods in a namespace whose nodes have had the time for it.
func (t *teardown) endPods(ctx context.Context, namespace string) {
	pods := client.Collection{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: namespace}
	how := t.how
	how.Only = t.isOverdue
	_, _ = t.with.RemoveEach(ctx, pods, "", how) // what stays is named at the end
}

// collect removes what a garbage collector would have let follow now.
func (t *teardown) collect(ctx context.Context, namespace string) {
	_ = t.empty(ctx, namespace, t.withoutGarbageCollector()) // what stays is named at the end
}

// withoutGarbageCollector is how the run removes what it made where no garbage collector has acted in time.
func (t *teardown) withoutGarbageCollector() client.Removal {
	how := t.how
	how.Absent = append(slices.Clone(how.Absent), v1alpha1.GC)
	return how
}

// isOverdue says that the grace of a pod is over, which it has had since the teardown began at the latest, or that there is hardly
// any time left.
func (t *teardown) isOverdue(pod *client.Object) bool {
	grace := pod.GetDeletionGracePeriodSeconds()
	if grace == nil {
		return false
	}
	own := t.began.Add(time.Duration(*grace)*time.Second + t.slowed(killing))
	return time.Now().After(own) || time.Until(t.end) < forcing
}

// killing is how long a node may take to end a pod whose grace is over.
const killing = 10 * time.Second

// contentOf is everything in a namespace that can be found. It fails where something can not.
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
		if response.Err != nil && !unserved(response) {
			failures = append(failures, response.Err)
		}
	}
	return content, errors.Join(failures...)
}

// isHeldBySpec says that the namespace controller has done its part, and only a finalizer that a spec gave the namespace holds it.
func isHeldBySpec(namespace *client.Object) bool {
	finalizers := specFinalizers(namespace)
	return slices.ContainsFunc(finalizers, isOwnFinalizer) && !slices.Contains(finalizers, string(corev1.FinalizerKubernetes))
}

func isOwnFinalizer(finalizer string) bool { return client.Removal{}.Removes(finalizer) }

func specFinalizers(namespace *client.Object) []string {
	finalizers, _, _ := unstructured.NestedStringSlice(namespace.Object, "spec", "finalizers")
	return finalizers
}

// slowed is a time that is enough on a fast cluster, made as many times longer as the cluster was slow when the run was set up.
func (e *Environment) slowed(usual time.Duration) time.Duration {
	return e.options.ForSlowness(e.Latency().Slowness()).Slowed(usual)
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

// finalize takes finalizers off a namespace's spec: the run's own, and those that are named, as the namespace controller does at
// its end with its own. The namespace is as it was read, or the server refuses.
func (t *teardown) finalize(ctx context.Context, namespace *client.Object, finalizers ...string) {
	namespace = namespace.DeepCopy()
	kept := slices.DeleteFunc(specFinalizers(namespace), func(finalizer string) bool {
		return slices.Contains(finalizers, finalizer) || t.how.Removes(finalizer)
	})
	// A namespace's spec is an object, so this cannot fail.
	_ = unstructured.SetNestedStringSlice(namespace.Object, kept, "spec", "finalizers")
	t.with.Update(ctx, namespace, "finalize")
}
