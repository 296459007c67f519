package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// leaveTime bounds how long a run waits for its namespaces to go. The namespace controller takes 5 s to begin.
	leaveTime = 90 * time.Second
	// leavePolling is how often a namespace is looked for; watching one takes a permission that looking does not.
	leavePolling = 200 * time.Millisecond
)

// clusterScoped are the cluster-scoped resources of which specs make objects, beside namespaces.
var clusterScoped = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// End removes everything the run made, holds included, and waits until it is gone. It fails, naming what is left, when
// that does not succeed within some 90 seconds.
func (v *Visit) End(ctx context.Context) error {
	v.lease.release()
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if answer := v.client.ask(ctx, request{verb: http.MethodGet, path: "/version"}); answer.Status == 0 {
		return fmt.Errorf("the server does not answer any more: %w", answer.Err)
	}
	failures := v.client.clearClusterScoped(ctx, v.options.Run)
	var leaving []*Object
	for _, namespace := range v.namespaces {
		if err := v.client.removeNamespace(ctx, namespace); err != nil {
			failures = append(failures, err)
			continue
		}
		leaving = append(leaving, namespace)
	}
	unattended := time.Now().Add(v.unattendedAfter())
	for _, namespace := range leaving {
		failures = append(failures, v.client.awaitRemoval(ctx, namespace, unattended))
	}
	return errors.Join(failures...)
}

// Leftover is what an earlier run left on a cluster, or what a run that is still alive has there.
type Leftover struct {
	// Run is the run's id.
	Run string
	// AliveUntil is until when the run's lease is good; zero when it is not any more.
	AliveUntil time.Time
	namespaces []*Object
}

// Leftovers finds the runs that have something on a cluster, by the label of their namespaces. It fails with
// ErrUnreachable, or when the credentials do not allow to list namespaces.
func Leftovers(ctx context.Context, config *rest.Config) ([]Leftover, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	if _, err := serverVersion(ctx, client); err != nil {
		return nil, unreachable(config, err)
	}
	namespaces, err := client.list(ctx, "/api/v1/namespaces", RunLabel)
	if err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", err)
	}
	var leftovers []Leftover
	for _, namespace := range namespaces {
		run := namespace.GetLabels()[RunLabel]
		at := slices.IndexFunc(leftovers, func(leftover Leftover) bool { return leftover.Run == run })
		if at < 0 {
			at, leftovers = len(leftovers), append(leftovers, Leftover{Run: run})
		}
		leftovers[at].namespaces = append(leftovers[at].namespaces, namespace)
		if until, alive := client.aliveUntil(ctx, namespace); alive {
			leftovers[at].AliveUntil = until
		}
	}
	return leftovers, nil
}

// Remove removes what a run left, as the run itself would have.
func (l Leftover) Remove(ctx context.Context, config *rest.Config) error {
	client, err := newClient(config)
	if err != nil {
		return err
	}
	visit := Visit{options: VisitOptions{Run: l.Run}, client: client, namespaces: l.namespaces}
	return visit.End(ctx)
}

// aliveUntil reads the lease in a run's namespace. A run that has only just made the namespace may have had no time to
// make a lease.
func (c *client) aliveUntil(ctx context.Context, namespace *Object) (time.Time, bool) {
	lease := &Object{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	lease.SetNamespace(namespace.GetName())
	lease.SetName(leaseName)
	if answer := c.get(ctx, lease); answer.Err == nil {
		return fresh(answer.Object, time.Now())
	}
	return young(namespace, time.Now())
}

// clearClusterScoped removes the run's cluster-scoped objects. What the credentials do not allow to look at, they did
// not allow to create.
func (c *client) clearClusterScoped(ctx context.Context, run string) []error {
	var failures []error
	for _, resource := range clusterScoped {
		err := c.clear(ctx, clearing{mapping: &meta.RESTMapping{Resource: resource}}, RunLabel+"="+run)
		if err != nil && !apierrors.IsForbidden(err) {
			failures = append(failures, fmt.Errorf("remove the %s of run %s: %w", resource.Resource, run, err))
		}
	}
	return failures
}

// removeNamespace asks for a namespace's deletion and empties it, holds included.
func (c *client) removeNamespace(ctx context.Context, namespace *Object) error {
	answer := c.delete(ctx, namespace, metav1.DeleteOptions{})
	if answer.Err != nil && !apierrors.IsNotFound(answer.Err) {
		return fmt.Errorf("delete namespace %q: %w", namespace.GetName(), answer.Err)
	}
	return c.empty(ctx, namespace.GetName())
}

// empty removes every object of every kind in a namespace of the run's own. Kinds that the credentials may not touch
// are left to the namespace controller.
func (c *client) empty(ctx context.Context, namespace string) error {
	lists, err := discovery.ServerPreferredNamespacedResources(c.discovery)
	if len(lists) == 0 && err != nil {
		return fmt.Errorf("find what namespace %q may hold: %w", namespace, err)
	}
	removable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete", "patch"}}, lists)
	resources, err := discovery.GroupVersionResources(removable)
	if err != nil {
		return fmt.Errorf("find what namespace %q may hold: %w", namespace, err)
	}
	for _, resource := range slices.SortedFunc(maps.Keys(resources), permissionsLast) {
		// A kind that cannot be cleared holds the namespace, and is named there.
		_ = c.clear(ctx, clearing{mapping: &meta.RESTMapping{Resource: resource}, namespace: namespace}, "")
	}
	return nil
}

// permissionsLast orders resources so that what says who may remove things is removed after everything else.
func permissionsLast(a, b schema.GroupVersionResource) int {
	rank := func(resource schema.GroupVersionResource) int {
		if resource.Group == rbacv1.GroupName {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.String(), b.String()))
}

// awaitRemoval waits until a namespace is gone. Where no controller is at work on it by a moment, which its conditions
// tell, the namespace is empty by then and is finalized here.
func (c *client) awaitRemoval(ctx context.Context, namespace *Object, unattended time.Time) error {
	var answer Answer
	err := wait.PollUntilContextCancel(ctx, leavePolling, true, func(ctx context.Context) (bool, error) {
		answer = c.get(ctx, namespace)
		if apierrors.IsNotFound(answer.Err) || apierrors.IsForbidden(answer.Err) {
			return true, nil
		}
		if answer.Err == nil && time.Now().After(unattended) && len(conditionsOf(answer.Object)) == 0 {
			c.finalize(ctx, answer.Object)
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("namespace %q is still there: %s", namespace.GetName(), whyNamespaceStays(answer))
	}
	return nil
}

// unattendedTime is how long a namespace may be terminating without a condition before nobody is thought to attend to
// it: the namespace controller begins after 5 s, and sets its conditions at once.
const unattendedTime = 8 * time.Second

// unattendedAfter is unattendedTime, or nothing where the run has found out that there are no controllers.
func (v *Visit) unattendedAfter() time.Duration {
	if !v.unprobed && v.missing[v1alpha1.KCM] != "" && v.missing[v1alpha1.GC] != "" {
		return 0
	}
	return unattendedTime
}

// finalize does what the namespace controller does at its end: it takes the finalizer off an empty namespace's spec.
func (c *client) finalize(ctx context.Context, namespace *Object) {
	namespace = namespace.DeepCopy()
	unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
	c.onObject(ctx, namespace, request{verb: http.MethodPut, body: namespace.Object}, "finalize")
}

func conditionsOf(object *Object) []any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return conditions
}

// whyNamespaceStays tells what the namespace controller says about a namespace that does not go.
func whyNamespaceStays(answer Answer) string {
	switch {
	case answer.Err != nil:
		return answer.Message()
	case answer.Object == nil:
		return "the time was up before the server had answered"
	}
	var reasons []string
	for _, entry := range conditionsOf(answer.Object) {
		condition, _ := entry.(map[string]any)
		if condition["status"] == "True" {
			reasons = append(reasons, fmt.Sprint(condition["message"]))
		}
	}
	if len(reasons) == 0 {
		return "nothing is said to hold it"
	}
	return strings.Join(reasons, "; ")
}
