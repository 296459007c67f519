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

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/sys/crash"
)

// Removal selects how a run removes its own objects. The zero value removes only the run's own finalizers and waits for other controllers
// to remove theirs.
type Removal struct {
	// Absent are the controllers of Kubernetes that do not run, so that nothing else removes their finalizers.
	Absent []v1alpha1.Feature
	// AllFinalizers also removes the finalizers of other controllers.
	AllFinalizers bool
	// Overdue selects the pods that no longer wait for their nodes; nil selects none.
	Overdue func(pod *Object) bool
	// Except selects objects to leave alone; nil selects none.
	Except func(*Object) bool
}

// builtIn maps finalizers of Kubernetes to the feature of their controllers. Removing one from an object of the run is safe, because it
// protects only other objects of the run.
var builtIn = map[string]v1alpha1.Feature{
	metav1.FinalizerDeleteDependents:           v1alpha1.GC,
	metav1.FinalizerOrphanDependents:           v1alpha1.GC,
	"kubernetes.io/pvc-protection":             v1alpha1.KCM,
	"kubernetes.io/pv-protection":              v1alpha1.KCM,
	"kubernetes.io/vac-protection":             v1alpha1.KCM,
	"batch.kubernetes.io/job-tracking":         v1alpha1.KCM,
	"resource.kubernetes.io/delete-protection": v1alpha1.KCM,
}

// definitionCleanup is the API server's finalizer on a CustomResourceDefinition. Without it the custom resources would remain in storage,
// where they could not be deleted.
const definitionCleanup = "customresourcecleanup.apiextensions.k8s.io"

// Removes reports whether a finalizer is removed instead of waited for.
func (r Removal) Removes(finalizer string) bool {
	feature, ok := builtIn[finalizer]
	return strings.HasPrefix(finalizer, Domain) || ok && slices.Contains(r.Absent, feature) ||
		r.AllFinalizers && finalizer != definitionCleanup
}

// Clear removes the selected objects of a collection that contains only the run's objects. It removes their finalizers as selected, and
// deletes them immediately with their dependents.
func (c *Client) Clear(ctx context.Context, collection Collection, selector string, removal Removal) Response {
	objects, listed := c.release(ctx, collection, selector, removal)
	if listed.Err != nil || len(objects) == 0 {
		return listed
	}
	if removal.Except == nil && !slices.ContainsFunc(objects, removal.isGraceful) {
		if deleted := c.DeleteCollection(ctx, collection, Request{Query: selecting(selector), Body: immediately()}); deleted.Err == nil {
			return deleted
		}
	}
	return c.deleteEach(ctx, objects, removal) // deletecollection may be denied where delete is not
}

// RemoveEach is Clear for a collection that also contains objects of other users, which may carry copied labels. It deletes each object of the
// run by name, because a server that ignores selectors would delete the others. It returns the objects found.
func (c *Client) RemoveEach(ctx context.Context, collection Collection, selector string, removal Removal) ([]*Object, Response) {
	objects, listed := c.release(ctx, collection, selector, removal)
	if listed.Err != nil {
		return nil, listed
	}
	return objects, c.deleteEach(ctx, objects, removal)
}

// release lists the objects to remove and removes their finalizers.
func (c *Client) release(ctx context.Context, collection Collection, selector string, removal Removal) ([]*Object, Response) {
	objects, listed := c.List(ctx, collection, selector)
	objects = slices.DeleteFunc(objects, func(object *Object) bool {
		return !c.guard.owns(collection, object) || removal.Except != nil && removal.Except(object)
	})
	for _, object := range objects { // whose names may not show whose they are
		if uid := object.GetUID(); uid != "" {
			c.guard.noteCreated(collection.path()+"/"+object.GetName(), uid)
		}
	}
	crash.InParallel(sideBySide, len(objects), func(i int) { c.RemoveFinalizers(ctx, objects[i], removal) })
	return objects, listed
}

// Remove deletes one object of the run by name.
func (c *Client) Remove(ctx context.Context, object *Object, removal Removal) {
	if read := c.Get(ctx, object); read.Err == nil {
		c.RemoveFinalizers(ctx, read.Object, removal)
		object = read.Object
	}
	c.Delete(ctx, object, removal.optionsFor(object))
}

// sideBySide is the number of objects that are removed in parallel, because requests to a distant cluster are slow.
const sideBySide = 8

// DeleteEach deletes those objects of a collection that the run created, by name.
func (c *Client) DeleteEach(ctx context.Context, collection Collection, objects []*Object) Response {
	own := slices.DeleteFunc(slices.Clone(objects), func(object *Object) bool { return !c.guard.owns(collection, object) })
	return c.deleteEach(ctx, own, Removal{})
}

// deleteEach deletes objects by name. The response is the first refusal, if any. An object that is gone or was replaced is not a refusal.
func (c *Client) deleteEach(ctx context.Context, objects []*Object, removal Removal) Response {
	responses := make([]Response, len(objects))
	crash.InParallel(sideBySide, len(objects), func(i int) {
		if removal.isDone(objects[i]) {
			return
		}
		responses[i] = c.Delete(ctx, objects[i], removal.optionsFor(objects[i]))
	})
	for _, response := range responses {
		if response.Err != nil && !apierrors.IsNotFound(response.Err) && !apierrors.IsConflict(response.Err) {
			return response
		}
	}
	return Response{}
}

// isDone reports whether another delete of an object would change nothing.
func (r Removal) isDone(object *Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return object.GetDeletionTimestamp() != nil && (r.isGraceful(object) || grace == nil || *grace == 0)
}

// optionsFor returns the options to delete exactly this object, with its dependents, and immediately unless its node must stop it.
func (r Removal) optionsFor(object *Object) metav1.DeleteOptions {
	options := immediately()
	if uid := object.GetUID(); uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if r.isGraceful(object) {
		options.GracePeriodSeconds = nil
	}
	return options
}

// isGraceful reports whether an object is a pod that runs on a node. Its containers keep their grace period, because they may use resources
// that the next pod needs.
func (r Removal) isGraceful(object *Object) bool {
	if object.GetKind() != "Pod" || object.GroupVersionKind().Group != corev1.GroupName {
		return false
	}
	started, _, _ := unstructured.NestedString(object.Object, "status", "startTime") // set by the kubelet
	return started != "" && (r.Overdue == nil || !r.Overdue(object))
}

// immediately returns the options of an immediate delete with dependents.
func immediately() metav1.DeleteOptions {
	return WithKind(metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}

// contests limits how often finalizers are written again after a conflict.
const contests = 5

// RemoveFinalizers removes the selected finalizers from an object of the run. After a conflict it reads the object again.
func (c *Client) RemoveFinalizers(ctx context.Context, object *Object, removal Removal) {
	for range contests {
		finalizers := object.GetFinalizers()
		kept := slices.DeleteFunc(slices.Clone(finalizers), removal.Removes)
		if len(kept) == len(finalizers) {
			return
		}
		written := c.Patch(ctx, object, types.MergePatchType, map[string]any{"metadata": map[string]any{
			"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": kept,
		}}, "")
		if apierrors.IsForbidden(written.Err) { // roles permit to patch only what a run patches
			updated := object.DeepCopy()
			updated.SetFinalizers(kept)
			written = c.Update(ctx, updated, "")
		}
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
