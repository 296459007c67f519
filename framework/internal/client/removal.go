package client

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// Removal is how a run removes its own objects. The zero value removes only the run's own finalizers, and leaves every other one
// to the controller that waits for it.
type Removal struct {
	// Absent are the controllers of Kubernetes that are not at work. Nobody else removes their finalizers then.
	Absent []v1alpha1.Feature
	// AllFinalizers removes the finalizers of other controllers, too.
	AllFinalizers bool
	// Overdue are the pods that are not left to their nodes any longer; nil leaves all.
	Overdue func(pod *Object) bool
	// Only removes the objects for which it is true; nil removes all.
	Only func(*Object) bool
}

// builtIn are finalizers that controllers of Kubernetes remove, by what the controllers are needed for. To remove one in their place
// harms nobody else: on an object of the run it protects other objects of the run.
var builtIn = map[string]v1alpha1.Feature{
	metav1.FinalizerDeleteDependents:           v1alpha1.GC,
	metav1.FinalizerOrphanDependents:           v1alpha1.GC,
	"kubernetes.io/pvc-protection":             v1alpha1.KCM,
	"kubernetes.io/pv-protection":              v1alpha1.KCM,
	"kubernetes.io/vac-protection":             v1alpha1.KCM,
	"batch.kubernetes.io/job-tracking":         v1alpha1.KCM,
	"resource.kubernetes.io/delete-protection": v1alpha1.KCM,
}

// definitionCleanup is the API server's finalizer on a CustomResourceDefinition. Without it the custom resources would stay in the
// storage, where nobody could delete them.
const definitionCleanup = "customresourcecleanup.apiextensions.k8s.io"

// Removes says whether a finalizer is removed, and not waited for.
func (r Removal) Removes(finalizer string) bool {
	need, is := builtIn[finalizer]
	return strings.HasPrefix(finalizer, Domain) || is && slices.Contains(r.Absent, need) ||
		r.AllFinalizers && finalizer != definitionCleanup
}

// Clear removes the selected objects of a collection that is the run's own: it removes their finalizers as far as the removal says,
// and deletes them at once and with their dependents.
func (c *Client) Clear(ctx context.Context, collection Collection, selector string, how Removal) Response {
	objects, listed := c.release(ctx, collection, selector, how)
	if listed.Err != nil || len(objects) == 0 {
		return listed
	}
	if how.Only == nil && !slices.ContainsFunc(objects, how.isGraceful) {
		if deleted := c.DeleteCollection(ctx, collection, selecting(selector), atOnce()); deleted.Err == nil {
			return deleted
		}
	}
	return c.deleteEach(ctx, objects, how) // deletecollection may be denied where delete is not
}

// RemoveEach is Clear for a collection that has objects of others, too: each is deleted by its name, for a server that
// ignored selectors would take those of others. It returns what it found.
func (c *Client) RemoveEach(ctx context.Context, collection Collection, selector string, how Removal) ([]*Object, Response) {
	objects, listed := c.release(ctx, collection, selector, how)
	if listed.Err != nil {
		return nil, listed
	}
	return objects, c.deleteEach(ctx, objects, how)
}

// release lists the objects of a collection that are to be removed, and removes their finalizers.
func (c *Client) release(ctx context.Context, collection Collection, selector string, how Removal) ([]*Object, Response) {
	objects, listed := c.List(ctx, collection, selector)
	if how.Only != nil {
		objects = slices.DeleteFunc(objects, func(object *Object) bool { return !how.Only(object) })
	}
	workqueue.ParallelizeUntil(ctx, sideBySide, len(objects), func(i int) {
		c.guard.owns(collection, objects[i])
		c.LetGo(ctx, objects[i], how)
	})
	return objects, listed
}

// Remove deletes one object of the run by its name.
func (c *Client) Remove(ctx context.Context, object *Object, how Removal) {
	if read := c.Get(ctx, object); read.Err == nil {
		c.LetGo(ctx, read.Object, how)
		object = read.Object
	}
	c.Delete(ctx, object, how.optionsFor(object))
}

// sideBySide is how many objects are removed at the same time: on a cluster that is far away each takes a while.
const sideBySide = 8

// DeleteEach deletes objects of a collection by their names, as far as they are the run's own.
func (c *Client) DeleteEach(ctx context.Context, collection Collection, objects []*Object) Response {
	for _, object := range objects {
		c.guard.owns(collection, object)
	}
	return c.deleteEach(ctx, objects, Removal{})
}

// deleteEach deletes objects by their names. The response is the first refusal, where there is one; an object that is gone, or
// that is another one by now, is no refusal.
func (c *Client) deleteEach(ctx context.Context, objects []*Object, how Removal) Response {
	responses := make([]Response, len(objects))
	workqueue.ParallelizeUntil(ctx, sideBySide, len(objects), func(i int) {
		if how.isDone(objects[i]) {
			return
		}
		responses[i] = c.Delete(ctx, objects[i], how.optionsFor(objects[i]))
	})
	for _, response := range responses {
		if response.Err != nil && !apierrors.IsNotFound(response.Err) && !apierrors.IsConflict(response.Err) {
			return response
		}
	}
	return Response{}
}

// isDone says that another delete of an object would change nothing.
func (r Removal) isDone(object *Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return object.GetDeletionTimestamp() != nil && (r.isGraceful(object) || grace == nil || *grace == 0)
}

// optionsFor are the options of the delete of an object: of exactly this one, with its dependents, and at once unless a node is to
// end it.
func (r Removal) optionsFor(object *Object) metav1.DeleteOptions {
	options := atOnce()
	if uid := object.GetUID(); uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if r.isGraceful(object) {
		options.GracePeriodSeconds = nil
	}
	return options
}

// isGraceful says that an object is a pod that a node runs. Its containers may use what a pod that is deleted at once would leave
// to the next one, so they have the time that the pod gives them.
func (r Removal) isGraceful(object *Object) bool {
	if object.GetKind() != "Pod" || object.GroupVersionKind().Group != corev1.GroupName {
		return false
	}
	started, _, _ := unstructured.NestedString(object.Object, "status", "startTime") // which kubelets write
	return started != "" && (r.Overdue == nil || !r.Overdue(object))
}

// atOnce are the options of a delete that leaves nothing and waits for nothing.
func atOnce() metav1.DeleteOptions {
	return WithKind(metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}

// contests is how often the finalizers of an object are written that somebody else writes at the same time.
const contests = 5

// LetGo removes finalizers from an object of the run, as far as the removal says. It writes what it has read, or reads again.
func (c *Client) LetGo(ctx context.Context, object *Object, how Removal) {
	for range contests {
		finalizers := object.GetFinalizers()
		kept := slices.DeleteFunc(slices.Clone(finalizers), how.Removes)
		if len(kept) == len(finalizers) {
			return
		}
		written := c.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": map[string]any{
			"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": kept,
		}}, "")
		if !apierrors.IsConflict(written.Err) {
			return
		}
		read := c.Get(ctx, object)
		if read.Err != nil || read.Object.GetUID() != object.GetUID() {
			return
		}
		object = read.Object
	}
}
